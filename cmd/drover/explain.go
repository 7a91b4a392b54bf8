package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"drover/pools"
)

func newExplainCommand() *cobra.Command {
	var config, arch, output string
	var ipxe, live bool
	var api apiClient
	cmd := &cobra.Command{
		Use:   "explain MAC",
		Short: "Show what a machine would get, and why",
		Long: `Explain prints the Plan for a MAC: name, address, pool, cluster, image, loader,
kernel arguments, DHCP options, files, labels, taints, and for each value the
line of the config that set it.

It reads the config file and asks nobody. With --live it also asks the running
server for the nodes that were added over the REST API.`,
		Example: `  drover explain -c drover.yaml 94:57:a5:d3:ec:f2
  drover explain -c drover.yaml 94:57:a5:d3:ec:f2 --arch bios -o yaml
  drover explain -c drover.yaml 94:57:a5:d3:ec:f2 --live`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			q := pools.Query{IPXE: ipxe}
			var err error
			if q.MAC, err = pools.ParseMAC(args[0]); err != nil {
				return &exitError{exitUsage, err}
			}
			if q.Firmware, err = pools.ParseFirmware(arch); err != nil {
				return &exitError{exitUsage, err}
			}
			var added []pools.PoolNode
			if live {
				if added, err = addedNodes(cmd.Context(), &api); err != nil {
					return err
				}
			}
			farm, err := loadConfig(config, cmd.ErrOrStderr(), added...)
			if err != nil {
				return err
			}
			plan := farm.Resolve(q)
			if plan == nil {
				return fmt.Errorf("%s is none of ours: no node has it, and there is no catch-all pool", q.MAC)
			}
			return printPlan(cmd.OutOrStdout(), plan, output)
		},
	}
	configFlag(cmd, &config)
	api.apiFlags(cmd)
	cmd.Flags().BoolVar(&live, "live", false, "with the nodes that were added over the API of the running server")
	cmd.Flags().StringVar(&arch, "arch", string(pools.UEFIx64), "firmware that asks: "+strings.Join(firmwareNames(), "|"))
	cmd.Flags().BoolVar(&ipxe, "ipxe", false, "iPXE asks, and wants its script rather than a loader")
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text|json|yaml")
	_ = cmd.RegisterFlagCompletionFunc("arch", cobra.FixedCompletions(firmwareNames(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// addedNodes asks the server for the nodes that its config file does not
// declare.
func addedNodes(ctx context.Context, api *apiClient) ([]pools.PoolNode, error) {
	var all []pools.NodeInfo
	if err := api.call(ctx, http.MethodGet, "/api/v1/nodes", nil, &all); err != nil {
		return nil, err
	}
	var added []pools.PoolNode
	for _, n := range all {
		if !n.Declared() {
			added = append(added, n.PoolNode)
		}
	}
	return added, nil
}

func firmwareNames() []string {
	names := make([]string, len(pools.Firmwares))
	for i, f := range pools.Firmwares {
		names[i] = string(f)
	}
	return names
}

// explanation is a Plan with its origins, as JSON and YAML show it.
type explanation struct {
	*pools.Plan
	Why pools.Why `json:"why"`
}

func printPlan(w io.Writer, p *pools.Plan, format string) error {
	switch format {
	case "text":
		_, err := io.WriteString(w, planText(p))
		return err
	case "json":
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(explanation{p, p.Why()})
	case "yaml":
		return printYAML(w, explanation{p, p.Why()})
	}
	return &exitError{exitUsage, fmt.Errorf("unknown output %q (text, json or yaml)", format)}
}

// printYAML writes what JSON would show as YAML, in the same order.
func printYAML(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil { // JSON is YAML
		return err
	}
	blockStyle(&doc)
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(&doc); err != nil {
		return err
	}
	return enc.Close()
}

// blockStyle removes the style of JSON: braces, brackets and quotes that are
// not needed.
func blockStyle(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" && strings.Contains(n.Value, "\n") {
		n.Style = yaml.LiteralStyle
	}
	for _, c := range n.Content {
		blockStyle(c)
	}
}
