// Package told prints what a client sees, a JSON object a line, as tests/support/clients/programs.py reads it.
package told

import (
	"bufio"
	"encoding/json"
	"os"
)

// Record is a record as a consumer sees it. Kind is 1 for a producer's timestamp, 2 for the broker's.
type Record struct {
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	Kind      int      `json:"kind"`
	Time      int64    `json:"time"`
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []Header `json:"headers"`
}

// Header is a header of a record.
type Header struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

var out = bufio.NewWriter(os.Stdout)

// Tell prints a record.
func Tell(record Record) {
	line, err := json.Marshal(record)
	Check(err)
	_, err = out.Write(append(line, '\n'))
	Check(err)
}

// Check ends the program if there is an error.
func Check(err error) {
	if err != nil {
		out.Flush()
		println(err.Error())
		os.Exit(1)
	}
}

// Done writes what was told.
func Done() {
	Check(out.Flush())
}
