package inventory

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"strings"

	"drover/migrate"
	"drover/pools"
)

// columns are the names of the fields, in lower case, without blanks and other marks.
const columns = `name: name hostname host fqdn machine node nodename server machinename
mac: mac macs macaddress macaddresses bootmac pxemac hwaddr hwaddress hardwareaddress ethernet primarymac mac1 mac2 mac3 mac4 extramacs
ip: ip ips ipaddress ipaddresses ipv4 ipv4address address ip4 ipcidr
ip6: ip6 ipv6 ipv6address
pool: pool group hostgroup resourcepool hostgrouptitle role
tags: tags tag labels
kernel: kernelargs kernelparameters kernelparams kernel
power: powertype powerdriver bmctype
bmc: poweraddress bmcaddress bmc ipmi ipmiaddress ilo idrac bmcip ipmiip poweripaddress
user: poweruser bmcuser ipmiuser
uuid: uuid systemuuid productuuid
password: powerpassword powerpass bmcpassword ipmipassword
network: subnet network cidr subnets
mask: netmask mask subnetmask prefix prefixlength
router: gateway router defaultgateway gw
device: device virtualmachine parentobject
mgmt: mgmtonly managementonly
other: id systemid status state power powerstate owner zone fabric vlan cores cpu cpus ram memory disks storage storagegb architecture arch os
other: operatingsystem osystem globalstatus buildstatus location organization model vendor manufacturer serial serialnumber rack position comment
other: notes note description domain environment puppetenvironment compute computeresource created updated lastreport owner_type release distroseries
other: interfaces label enabled type parent bridge lag mtu mode vrf cable speed duplex connection kvmhost spaces testing commissioning numa testresults puppetproxy puppetcaproxy media partitiontable contentview lifecycleenvironment`

// known returns the field of each column.
func known() map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(columns) {
		field, names, _ := strings.Cut(line, ":")
		for name := range strings.FieldsSeq(names) {
			fields[name] = field
		}
	}
	return fields
}

// maxRows bounds a table.
const maxRows = 200_000

// Table calls head with the first line of a table, the names of its columns, and row with each
// other one that is not empty.
func Table(file string, data []byte, head func(pools.Origin, []string) error, row func(pools.Origin, []string)) error {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // spreadsheets write a byte order mark
	first, _, _ := bytes.Cut(data, []byte("\n"))
	r := csv.NewReader(bytes.NewReader(data))
	r.Comma, r.FieldsPerRecord = separator(string(first)), -1
	r.TrimLeadingSpace = r.Comma != '\t' // an empty value is no space
	for n := 0; ; n++ {
		values, err := r.Read()
		at := pools.Origin{File: file}
		if len(values) > 0 {
			at.Line, _ = r.FieldPos(0)
		}
		switch {
		case errors.Is(err, io.EOF) && n > 0:
			return nil
		case errors.Is(err, io.EOF):
			return migrate.FormatError(at, "an empty table")
		case err != nil:
			return migrate.FormatError(migrate.At(file), "%v", err)
		case n > maxRows:
			return migrate.FormatError(at, "more than %d rows", maxRows)
		case n == 0:
			if err := head(at, values); err != nil {
				return err
			}
		default:
			row(at, values)
		}
	}
}

// Field returns the field of nodes that a column of this name has: name, mac, ip, ip6, pool, tags,
// or one of those that only imports know; empty for an unknown one.
func Field(column string) string { return known()[normal(column)] }

// normal returns the name of a column in lower case, without blanks and other marks.
func normal(column string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(column))
}

// separator returns the separator of a header.
func separator(header string) rune {
	best, most := ',', strings.Count(header, ",")
	for _, c := range ";\t|" {
		if n := strings.Count(header, string(c)); n > most {
			best, most = c, n
		}
	}
	return best
}

// Words splits a value at blanks, commas, semicolons and bars.
func Words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,;|\t\r\n", r) })
}
