//go:build tools

// Package tools pins connectconformance and the modules it is built from.
package tools

import _ "connectrpc.com/conformance/cmd/connectconformance"
