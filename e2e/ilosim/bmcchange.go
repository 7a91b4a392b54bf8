package ilosim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// accept answers a command that was accepted.
func (b *BMC) accept(w http.ResponseWriter) {
	if !b.Wordy {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	writeJSON(w, http.StatusOK, object{"error": object{"code": "iLO.0.10.ExtendedInfo", "@Message.ExtendedInfo": []object{
		{"MessageId": "Base.1.4.Success"}, {"MessageId": "iLO.2.14.SystemResetRequired", "Severity": "Warning"},
	}}})
}

// patch changes the boot source in the resource at a part of the system's path.
func (b *BMC) patch(w http.ResponseWriter, r *http.Request, part string) {
	var in struct {
		Boot map[string]string
	}
	err := json.NewDecoder(r.Body).Decode(&in)
	b.log = append(b.log, fmt.Sprintf("PATCH %s %v If-Match %s", part, in.Boot, r.Header.Get("If-Match")))
	if b.happens(TagStale) {
		b.version++
	}
	mode, hasMode := in.Boot["BootSourceOverrideMode"]
	_, _, tag := b.tags()
	given := r.Header.Get("If-Match")
	switch {
	case b.happens(BusyOnce):
		w.Header().Set("Retry-After", "0")
		refuse(w, http.StatusServiceUnavailable, "Base.1.12.ServiceTemporarilyUnavailable", "Try again.")
	case given == "" && b.TagsDemanded != 0:
		refuse(w, b.TagsDemanded, "Base.1.12.PreconditionRequired", "The request has no If-Match.")
	case given != "" && given != "*" && given != tag:
		refuse(w, http.StatusPreconditionFailed, "Base.1.12.PreconditionFailed", "The entity tag does not match.")
	case part == "" && b.Settings != "":
		refuse(w, http.StatusBadRequest, "Ami.1.0.OperationSupportedInFutureStateURI", "Use the settings resource.")
	case err != nil || len(in.Boot) == 0:
		refuse(w, http.StatusBadRequest, "Base.1.12.MalformedJSON", "There is no Boot.")
	case b.ModeDemanded && !hasMode:
		refuse(w, http.StatusBadRequest, "Base.1.12.PropertyMissing", "BootSourceOverrideMode is required.")
	case b.ModeRefused && hasMode:
		refuse(w, http.StatusBadRequest, "Base.1.12.PropertyNotWritable", "BootSourceOverrideMode is read-only.")
	case !slices.Contains([]string{"", "None", "Hdd", "BiosSetup", b.pxe()}, in.Boot["BootSourceOverrideTarget"]):
		refuse(w, http.StatusBadRequest, "Base.1.12.PropertyValueNotInList", "There is no such boot source.")
	default:
		if b.ModeForgotten && !hasMode {
			mode = "Legacy"
		}
		b.override(w, Override{in.Boot["BootSourceOverrideTarget"], in.Boot["BootSourceOverrideEnabled"], mode})
	}
}

// override changes the boot source, unless a fault of the processor prevents it. Restoring one works.
func (b *BMC) override(w http.ResponseWriter, o Override) {
	old := b.next()
	merge := func(value *string, old string) {
		if *value == "" {
			*value = old
		}
	}
	merge(&o.Target, old.Target)
	merge(&o.Enabled, old.Enabled)
	merge(&o.Mode, old.Mode)
	fault := b.Fault
	if !strings.EqualFold(o.Target, "pxe") || fault == OverrideRefusedOff && b.on {
		fault = NoBMCFault
	}
	hidden := false
	switch fault {
	case OverrideRefused, OverrideRefusedOff:
		refuse(w, http.StatusBadRequest, "Base.1.12.ActionNotSupported", "The license has no boot override.")
		return
	case OverrideForbidden:
		refuse(w, http.StatusForbidden, "Base.1.12.InsufficientPrivilege", "The account may not configure.")
		return
	case OverrideIgnored:
		b.accept(w)
		return
	case OverrideContinuous:
		o.Enabled = "Continuous"
	case OverrideLegacy:
		if !b.NoMode {
			o.Mode = "Legacy"
		}
	case OverridePending:
		hidden = true
	}
	b.change()
	switch {
	case hidden:
		b.hidden = &o
	case b.Settings != "":
		b.settings, b.hidden = o, nil
	default:
		b.boot, b.hidden = o, nil
	}
	if fault == OverrideBroken {
		refuse(w, http.StatusInternalServerError, "Base.1.12.InternalError", "The change failed.")
		return
	}
	b.accept(w)
}

// reset switches the machine.
func (b *BMC) reset(w http.ResponseWriter, r *http.Request) {
	var in struct{ ResetType string }
	err := json.NewDecoder(r.Body).Decode(&in)
	b.log = append(b.log, "POST "+in.ResetType)
	off := in.ResetType == "ForceOff"
	on := in.ResetType == "On" || in.ResetType == "ForceOn"
	switch {
	case err != nil || !off && !on || !slices.Contains(b.resets(), in.ResetType) || off && b.Fault == ResetRefused:
		refuse(w, http.StatusBadRequest, "Base.1.12.ActionParameterNotSupported", in.ResetType+" is not supported.")
	case off && b.Fault == ResetFailed:
		refuse(w, http.StatusOK, "Base.1.12.InternalError", "The machine could not be switched off.")
	case off && b.Fault == ResetIgnored || b.on == on:
		b.accept(w)
	default:
		b.change()
		b.on = on
		switch {
		case on:
			b.start()
		case b.Fault == OverrideLost || b.Fault == OverrideRefusedOff:
			b.forget()
		}
		b.accept(w)
	}
}

// start boots the machine from its boot source, which it then forgets if it is for once.
func (b *BMC) start() {
	b.booted = b.next()
	b.starts++
	if b.booted.Enabled == "Once" {
		b.forget()
	}
}

func (b *BMC) forget() {
	none := Override{"None", "Disabled", b.next().Mode}
	b.boot, b.settings, b.hidden = none, none, nil
}
