package pools

// The messages about the config file on the REST API.

// ConfigInForce is the content of the operator's file that is in force, with those of the
// files that it includes. It may have secrets.
type ConfigInForce struct {
	File     string       `json:"file"`
	SHA256   string       `json:"sha256"` // of Content, hexadecimal; with Included, of all
	Content  string       `json:"content"`
	Included []ConfigPart `json:"included,omitempty"`
	// Held is the content of the file, if it is not active.
	Held *HeldConfig `json:"held,omitempty"`
}

// ConfigPart is a file that the config includes.
type ConfigPart struct {
	File    string `json:"file"` // absolute, or relative to the config file
	Content string `json:"content"`
}

// ReloadResult is what a reload of the config file, or a rollback, has done.
type ReloadResult struct {
	File           string `json:"file"`
	Nodes          int    `json:"nodes"`                    // all, with those of the API
	RestartPending bool   `json:"restartPending,omitempty"` // a part of it is in force after a restart only
	// Size is what the change has done to nodes.
	Size ChangeSize `json:"size"`
	// Held is the content of the file, if it is not active.
	Held *HeldConfig `json:"held,omitempty"`
}
