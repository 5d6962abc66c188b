//go:build tools

// Package tools pins h2spec and the modules it is built from.
package tools

import _ "github.com/summerwind/h2spec/cmd/h2spec"
