// Hello answers every HTTP request on port 8080 with its host name, which in a
// pod is the pod's name. The lab runs it to see that a node really runs pods
// and that they can be reached: a Ready node alone proves neither.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"time"
)

func main() {
	name, err := os.Hostname()
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{
		Addr:              ":8080",
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "hello from %s\n", name)
		}),
	}
	log.Printf("%s: listening on %s", name, server.Addr)
	log.Fatal(server.ListenAndServe())
}
