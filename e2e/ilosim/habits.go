package ilosim

import "net/http"

// Habits are how the Redfish service of a vendor departs from others. The zero Habits are a service that
// has all that is optional in the standard, and demands nothing.
type Habits struct {
	Vendor string
	IDs    []string // of the systems; the first is the machine. Empty: "1"

	Settings   string // last part of the path of the settings resource, the only one that takes an override
	Undeclared bool   // the system has no link to it; a refusal names it

	Tags         TagStyle
	TagsDemanded int // status without If-Match: 412 or 428; 0: it is not demanded

	Login LoginStyle

	ResetTypes []string // empty: all that are common
	ActionInfo bool     // they are listed by a resource of their own

	NoMode        bool // there is no BootSourceOverrideMode
	ModeDemanded  bool // a change without the mode is refused
	ModeRefused   bool // a change with the mode is refused
	ModeForgotten bool // a change without the mode sets it to Legacy
	UpperPXE      bool // the boot source is spelled PXE
	NoAllowable   bool // allowed values are not listed

	Slow  int  // readings until a change of power or override is seen
	Slash bool // paths without a slash at their end are redirected
	Wordy bool // an answer of success has a body with an error object
}

// TagStyle is where a resource has its entity tag.
type TagStyle string

// The styles of tags.
const (
	NoTags      TagStyle = ""
	HeaderTags  TagStyle = "header"
	BodyTags    TagStyle = "body"
	WeakTags    TagStyle = "weak"    // W/"1", in both
	StrongTags  TagStyle = "strong"  // W/"1" in both, and If-Match wants "1"
	QuotedTags  TagStyle = "quoted"  // the header has quotes around the tag of the body
	RefusedTags TagStyle = "refused" // no tag ever matches
)

// LoginStyle is how a service lets clients log in.
type LoginStyle string

// The styles of logins.
const (
	AnyLogin     LoginStyle = ""
	SessionLogin LoginStyle = "session" // HTTP Basic is refused
	BasicLogin   LoginStyle = "basic"   // there are no sessions
	HiddenLogin  LoginStyle = "hidden"  // HTTP Basic is refused, and no link leads to the sessions
)

// Vendors returns the habits of management processors. They are from public reports about clients
// that failed with them, and a firmware of a vendor may have others.
func Vendors() []Habits {
	return []Habits{
		// The override is seen some readings after the change was accepted.
		{Vendor: "Dell iDRAC", IDs: []string{"System.Embedded.1"}, Tags: WeakTags, Slow: 3,
			ResetTypes: []string{"On", "ForceOff", "ForceRestart", "GracefulRestart", "GracefulShutdown", "PushPowerButton", "Nmi", "PowerCycle"}},
		// DMTF/Redfishtool#106: without the mode it becomes the default one.
		{Vendor: "Supermicro", Tags: BodyTags, ModeForgotten: true, Slow: 2,
			ResetTypes: []string{"On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "Nmi", "ForceOn"}},
		// stmcginnis/gofish#171, DMTF/Redfish-Tacklebox#144.
		{Vendor: "AMI MegaRAC", IDs: []string{"Self"}, Settings: "SD", Tags: WeakTags, TagsDemanded: http.StatusPreconditionRequired,
			ResetTypes: []string{"ForceOff", "ForceOn", "ForceRestart", "GracefulShutdown"}},
		{Vendor: "Lenovo XCC", Tags: HeaderTags, TagsDemanded: http.StatusPreconditionRequired, ActionInfo: true, Slow: 2, ModeDemanded: true},
		// ansible/ansible#56050, #60031.
		{Vendor: "Huawei iBMC", Tags: HeaderTags, TagsDemanded: http.StatusPreconditionFailed, Login: SessionLogin,
			ResetTypes: []string{"On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi", "ForcePowerCycle"}},
		{Vendor: "HPE iLO", Tags: WeakTags, Slash: true, Wordy: true, ModeRefused: true, Slow: 1,
			ResetTypes: []string{"On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi", "PushPowerButton", "GracefulRestart"}},
	}
}

// Variants returns habits one at a time, whatever their vendor is.
func Variants() []Habits {
	return []Habits{
		{Vendor: "none"},
		{Vendor: "several systems", IDs: []string{"System_0", "HGX_Baseboard_0"}},
		{Vendor: "undeclared settings", Settings: "SD", Undeclared: true},
		{Vendor: "settings by another name", Settings: "Settings", Tags: BodyTags, TagsDemanded: http.StatusPreconditionFailed},
		{Vendor: "weak tags, compared strongly", Tags: StrongTags, TagsDemanded: http.StatusPreconditionRequired},
		{Vendor: "tags in quotes", Tags: QuotedTags},
		{Vendor: "tags that never match", Tags: RefusedTags},
		{Vendor: "a tag demanded, and none there", TagsDemanded: http.StatusPreconditionRequired},
		{Vendor: "Basic alone", Login: BasicLogin},
		{Vendor: "sessions alone", Login: SessionLogin},
		{Vendor: "sessions alone, without a link", Login: HiddenLogin},
		{Vendor: "no mode", NoMode: true, ModeRefused: true},
		{Vendor: "PXE", UpperPXE: true},
		{Vendor: "PXE, not listed", UpperPXE: true, NoAllowable: true},
		{Vendor: "ForceOn", ResetTypes: []string{"GracefulShutdown", "ForceOn", "ForceOff"}},
	}
}

// BMCFault is a failure of a [BMC] with an order of its own, beside its habits.
type BMCFault string

// The faults of a [BMC].
const (
	NoBMCFault BMCFault = "none"

	OverrideRefused    BMCFault = "override-refused"     // 400 with messages
	OverrideForbidden  BMCFault = "override-forbidden"   // 403
	OverrideBroken     BMCFault = "override-broken"      // 500, and half of the change is made
	OverrideIgnored    BMCFault = "override-ignored"     // accepted, and nothing changes
	OverridePending    BMCFault = "override-pending"     // accepted, and not seen before the next boot
	OverrideContinuous BMCFault = "override-continuous"  // once becomes always
	OverrideLegacy     BMCFault = "override-legacy"      // the boot mode becomes Legacy
	OverrideLost       BMCFault = "override-lost"        // switching off forgets it
	OverrideRefusedOff BMCFault = "override-refused-off" // switching off forgets it, and then it is refused

	TagStale     BMCFault = "tag-stale"     // another client changes the resource before the first change
	BusyOnce     BMCFault = "busy-once"     // 503 for the first change
	SessionEnds  BMCFault = "session-ends"  // 401 for the token, once
	SessionsFull BMCFault = "sessions-full" // no session is opened

	ResetRefused BMCFault = "reset-refused" // 400 for ForceOff
	ResetFailed  BMCFault = "reset-failed"  // 200 for ForceOff, with an error in the body
	ResetIgnored BMCFault = "reset-ignored" // 204 for ForceOff, and nothing happens
)

// BMCFaults returns all faults of a [BMC].
func BMCFaults() []BMCFault {
	return []BMCFault{
		NoBMCFault, OverrideRefused, OverrideForbidden, OverrideBroken, OverrideIgnored, OverridePending, OverrideContinuous, OverrideLegacy,
		OverrideLost, OverrideRefusedOff, TagStale, BusyOnce, SessionEnds, SessionsFull, ResetRefused, ResetFailed, ResetIgnored,
	}
}
