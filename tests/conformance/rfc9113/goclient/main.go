// Go's net/http as a client of HTTP/2 over TLS: plays one scene against a server, and writes what came of it as JSON.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Answer is what came of one request. Error has its text, if it failed.
type Answer struct {
	Status   int
	Protocol string
	Header   http.Header
	Trailer  http.Header
	Body     string
	Interims []Interim
	Error    string
}

// Interim is a response before the final one.
type Interim struct {
	Status int
	Header textproto.MIMEHeader
}

// Outcome is what a scene came to. Connections counts those that were opened.
type Outcome struct {
	Answers     []Answer
	Failures    []string
	Answered    int64
	Connections int64
}

const patience = 60 * time.Second

// player asks for paths below its address.
type player struct {
	address string
	client  *http.Client
	opened  int64
}

var scenes = map[string]func(*player, *Outcome, []string){
	"get":     get,
	"post":    post,
	"cancel":  cancel,
	"slowly":  slowly,
	"many":    many,
	"reloads": reloads,
}

func main() {
	address := flag.String("address", "", "https, host and port")
	authority := flag.String("ca", "", "a file with the certificate of the server's issuer")
	scene := flag.String("scene", "", "what is played; its arguments follow")
	flag.Parse()

	pem, err := os.ReadFile(*authority)
	if err != nil {
		panic(err)
	}
	trust := x509.NewCertPool()
	trust.AppendCertsFromPEM(pem)
	own := &player{address: *address}
	dialer := &net.Dialer{Timeout: patience}
	own.client = &http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{RootCAs: trust},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			atomic.AddInt64(&own.opened, 1)
			return dialer.DialContext(ctx, network, address)
		},
	}}
	var outcome Outcome
	scenes[*scene](own, &outcome, flag.Args())
	outcome.Connections = atomic.LoadInt64(&own.opened)
	if err := json.NewEncoder(os.Stdout).Encode(outcome); err != nil {
		panic(err)
	}
}

// get asks for each path in turn, with the field X-Do if one follows after a space: its response may have trailers.
func get(own *player, outcome *Outcome, paths []string) {
	for _, path := range paths {
		outcome.Answers = append(outcome.Answers, own.ask(own.request(context.Background(), "GET", path, nil)))
	}
}

// post streams a body of unknown length in a hundred pieces, and a trailer after it.
func post(own *player, outcome *Outcome, paths []string) {
	piece := bytes.Repeat([]byte("0123456789abcdef"), 1<<10)
	for _, path := range paths {
		reader, writer := io.Pipe()
		request := own.request(context.Background(), "POST", path, reader)
		request.Trailer = http.Header{"X-After": nil}
		go func() {
			for number := 0; number < 100; number++ {
				if _, err := writer.Write(piece); err != nil {
					return
				}
			}
			request.Trailer.Set("X-After", "the body")
			writer.Close()
		}()
		outcome.Answers = append(outcome.Answers, own.ask(request))
	}
}

// cancel reads the beginning of the first path's response and lets go of it, ten times; then it asks for the second. One connection at a
// time: the transport keeps one only when the request for which it was opened may be over already, and the next one opens another.
func cancel(own *player, outcome *Outcome, paths []string) {
	own.client.Transport.(*http.Transport).MaxConnsPerHost = 1
	for number := 0; number < 10; number++ {
		ctx, stop := context.WithCancel(context.Background())
		response, err := own.client.Do(own.request(ctx, "GET", paths[0], nil))
		if err != nil {
			outcome.fail(err)
		} else {
			if _, err := io.ReadFull(response.Body, make([]byte, 1)); err != nil {
				outcome.fail(err)
			}
			stop()
			if _, err := io.Copy(io.Discard, response.Body); err == nil {
				outcome.fail(fmt.Errorf("the response ended although it was cancelled"))
			}
			response.Body.Close()
		}
		stop()
	}
	get(own, outcome, paths[1:])
}

// slowly reads each response in pieces of 4 KiB: after each, Go sends a WINDOW_UPDATE for the stream and one for the connection. It answers
// with how many bytes there were.
func slowly(own *player, outcome *Outcome, paths []string) {
	own.client.Transport.(*http.Transport).MaxConnsPerHost = 1
	for _, path := range paths {
		response, err := own.client.Do(own.request(context.Background(), "GET", path, nil))
		if err != nil {
			outcome.fail(err)
			continue
		}
		total, piece := 0, make([]byte, 4<<10)
		for err == nil {
			var count int
			count, err = response.Body.Read(piece)
			total += count
		}
		if err != io.EOF {
			outcome.fail(err)
		}
		response.Body.Close()
		outcome.Answers = append(outcome.Answers, Answer{Status: response.StatusCode, Body: fmt.Sprint(total)})
	}
}

// many asks for the first path once, which opens the connection, and for all paths at once then.
func many(own *player, outcome *Outcome, paths []string) {
	own.ask(own.request(context.Background(), "GET", paths[0], nil))
	outcome.Answers = make([]Answer, len(paths))
	var group sync.WaitGroup
	for number, path := range paths {
		group.Add(1)
		go func(number int, path string) {
			defer group.Done()
			outcome.Answers[number] = own.ask(own.request(context.Background(), "GET", path, nil))
		}(number, path)
	}
	group.Wait()
}

// reloads has eight askers, who read and upload in turn until standard input ends.
func reloads(own *player, outcome *Outcome, paths []string) {
	var over atomic.Value
	var group sync.WaitGroup
	var lock sync.Mutex
	for asker := 0; asker < 8; asker++ {
		group.Add(1)
		go func(asker int) {
			defer group.Done()
			for number := asker; over.Load() == nil; number++ {
				method, body := "GET", io.Reader(nil)
				if number%2 == 1 {
					method, body = "POST", bytes.NewReader(bytes.Repeat([]byte("x"), 20_000))
				}
				answer := own.ask(own.request(context.Background(), method, paths[number%2], body))
				lock.Lock()
				if answer.Error != "" || answer.Status != 200 {
					outcome.fail(fmt.Errorf("%s: %d %s", method, answer.Status, answer.Error))
				}
				outcome.Answered++
				lock.Unlock()
			}
		}(asker)
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		panic(err)
	}
	over.Store(true)
	group.Wait()
}

func (own *player) request(ctx context.Context, method, path string, body io.Reader) *http.Request {
	path, steps, _ := strings.Cut(path, " ")
	request, err := http.NewRequestWithContext(ctx, method, own.address+path, body)
	if err != nil {
		panic(err)
	}
	if steps != "" {
		request.Header.Set("X-Do", steps)
		request.Header.Set("TE", "trailers")
	}
	return request
}

func (own *player) ask(request *http.Request) (answer Answer) {
	ctx, stop := context.WithTimeout(request.Context(), patience)
	defer stop()
	trace := &httptrace.ClientTrace{
		Got1xxResponse: func(status int, header textproto.MIMEHeader) error {
			answer.Interims = append(answer.Interims, Interim{status, header})
			return nil
		},
	}
	response, err := own.client.Do(request.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if err != nil {
		answer.Error = err.Error()
		return answer
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		answer.Error = err.Error()
	}
	answer.Status, answer.Protocol, answer.Body = response.StatusCode, response.Proto, string(body)
	answer.Header, answer.Trailer = response.Header, response.Trailer
	return answer
}

func (outcome *Outcome) fail(err error) {
	outcome.Failures = append(outcome.Failures, err.Error())
}
