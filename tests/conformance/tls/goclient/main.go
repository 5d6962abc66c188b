// Go's crypto/tls as a client: asks for / so many times, a connection each, and writes what it was answered as JSON.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// Answer is what came of one connection. Error has the alert's text, if there was one.
type Answer struct {
	Version string
	Cipher  string
	Resumed bool
	ALPN    string
	Body    string
	Error   string
}

const patience = 30 * time.Second

var versions = map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}

func main() {
	address := flag.String("address", "", "host and port")
	name := flag.String("name", "", "the name that is asked for")
	authority := flag.String("ca", "", "a file with the certificate of the server's issuer")
	version := flag.String("version", "1.3", "the only version of TLS that is spoken")
	certificate := flag.String("cert", "", "a file with the client's certificate")
	key := flag.String("key", "", "a file with its key")
	protocols := flag.String("alpn", "http/1.1", "protocols, with commas between them")
	times := flag.Int("times", 1, "how many connections")
	flag.Parse()

	config := &tls.Config{
		ServerName:         *name,
		RootCAs:            x509.NewCertPool(),
		MinVersion:         versions[*version],
		MaxVersion:         versions[*version],
		NextProtos:         strings.Split(*protocols, ","),
		ClientSessionCache: tls.NewLRUClientSessionCache(8),
	}
	pem, err := os.ReadFile(*authority)
	if err != nil {
		panic(err)
	}
	config.RootCAs.AppendCertsFromPEM(pem)
	if *certificate != "" {
		pair, err := tls.LoadX509KeyPair(*certificate, *key)
		if err != nil {
			panic(err)
		}
		// Also where its issuer is none of those that the server has named.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &pair, nil
		}
	}
	var answers []Answer
	for done := 0; done < *times; done++ {
		answers = append(answers, ask(*address, config))
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		panic(err)
	}
}

func ask(address string, config *tls.Config) (answer Answer) {
	dialer := &net.Dialer{Timeout: patience}
	conn, err := tls.DialWithDialer(dialer, "tcp", address, config)
	if err != nil {
		return Answer{Error: err.Error()}
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		panic(err)
	}
	state := conn.ConnectionState()
	answer.Version = tls.VersionName(state.Version)
	answer.Cipher = tls.CipherSuiteName(state.CipherSuite)
	answer.Resumed = state.DidResume
	answer.ALPN = state.NegotiatedProtocol
	request := "GET / HTTP/1.1\r\nHost: " + config.ServerName + "\r\nConnection: close\r\n\r\n"
	if _, err := io.WriteString(conn, request); err != nil {
		answer.Error = err.Error()
		return answer
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		answer.Error = err.Error()
		return answer
	}
	body, err := io.ReadAll(response.Body)
	answer.Body = string(body)
	if err != nil {
		answer.Error = err.Error()
	}
	return answer
}
