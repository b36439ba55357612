// Command registry is an OCI registry in memory for the end-to-end tests. It listens on a free port of
// 127.0.0.1, where the command that comes with the library listens on every interface, and prints the address.
// With REGISTRY_USERNAME and REGISTRY_PASSWORD in the environment it asks for them.
package main

import (
	"crypto/subtle"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	handler := registry.New()
	if username := os.Getenv("REGISTRY_USERNAME"); username != "" {
		handler = protect(handler, username, os.Getenv("REGISTRY_PASSWORD"))
	}
	fmt.Printf("listening on %s\n", listener.Addr())
	log.Fatal(http.Serve(listener, handler))
}

func protect(handler http.Handler, username, password string) http.Handler {
	return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		givenUsername, givenPassword, _ := request.BasicAuth()
		if !equal(givenUsername, username) || !equal(givenPassword, password) {
			response.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			http.Error(response, `{"errors":[{"code":"UNAUTHORIZED"}]}`, http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(response, request)
	})
}

func equal(given, wanted string) bool {
	return subtle.ConstantTimeCompare([]byte(given), []byte(wanted)) == 1
}
