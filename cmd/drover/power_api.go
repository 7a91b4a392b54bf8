package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"drover/pools"
	"drover/pools/ilo"
)

const powerPath = "/api/v1/power"

// orderOf reads a selector for a running server: names of nodes, or pool=NAME,
// chassis=NAME and tag=NAME, all of which must fit. The two are not mixed: to
// take more machines than were meant is worse than an error.
func orderOf(action ilo.Action, selector string) (pools.PowerOrder, error) {
	o := pools.PowerOrder{Action: string(action)}
	for _, word := range selected(selector) {
		key, value, rule := strings.Cut(word, "=")
		into := map[string]*string{"pool": &o.Pool, "chassis": &o.Chassis, "tag": &o.Tag}[key]
		switch {
		case !rule:
			o.Nodes = append(o.Nodes, word)
		case into == nil || value == "":
			return o, fmt.Errorf("%q: want pool=NAME, chassis=NAME or tag=NAME", word)
		case *into != "":
			return o, fmt.Errorf("%q: %s= is there twice, and a node has one", word, key)
		default:
			*into = value
		}
	}
	if rules := o.Pool+o.Chassis+o.Tag != ""; rules == (len(o.Nodes) > 0) {
		return o, errors.New("SELECTOR wants names of nodes, such as m1c1n1,m1c2n1, or pool=NAME, chassis=NAME and tag=NAME, which must all fit (the slots of a chassis that no server knows: --chassis)")
	}
	return o, nil
}

// powerJob has a server switch machines, and follows it. What is done is told as
// it happens.
func powerJob(ctx context.Context, api *apiClient, errs io.Writer, o pools.PowerOrder, every time.Duration) (job pools.PowerJob, err error) {
	if err := api.call(ctx, http.MethodPost, powerPath, o, &job); err != nil {
		return job, err
	}
	told := map[string]string{}
	for {
		for _, n := range job.Nodes {
			if told[n.Name] != n.Step && n.Step != pools.PowerWaiting && n.Step != pools.PowerDone && n.Step != pools.PowerFailed {
				fmt.Fprintf(errs, "drover: %s: %s\n", n.Name, n.Step)
			}
			told[n.Name] = n.Step
		}
		if !job.Ended.IsZero() {
			return job, nil
		}
		select {
		case <-ctx.Done():
			return job, fmt.Errorf("%w: the server goes on; GET %s/%s tells how", ctx.Err(), powerPath, job.ID)
		case <-time.After(every):
		}
		if err := api.call(ctx, http.MethodGet, powerPath+"/"+url.PathEscape(job.ID), nil, &job); err != nil {
			return job, err
		}
	}
}

// resultsOf are the results of a job as those that were switched from here.
func resultsOf(job pools.PowerJob) (out []ilo.Result) {
	for _, n := range job.Nodes {
		r := ilo.Result{Name: n.Name, State: ilo.State(n.State), Error: n.Error}
		if n.Error != "" {
			r.Err = errors.New(n.Error)
		}
		out = append(out, r)
	}
	return out
}
