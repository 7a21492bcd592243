// Package arguments runs a reader: read ADDRESS TOPIC [TIME] | group ADDRESS TOPIC GROUP COUNT IDLE_MS
package arguments

import (
	"os"
	"strconv"
	"time"

	"clients/told"
)

// Reader is a client. Read gets a time in milliseconds, or Oldest.
type Reader struct {
	Oldest int64
	Read   func(address, topic string, from int64)
	Group  func(address, topic, name string, count int64, idle time.Duration)
}

// Run does what the process's arguments say.
func Run(reader Reader) {
	address, topic := os.Args[2], os.Args[3]
	switch os.Args[1] {
	case "read":
		from := reader.Oldest
		if len(os.Args) > 4 {
			from = number(os.Args[4])
		}
		reader.Read(address, topic, from)
	case "group":
		idle := time.Duration(number(os.Args[6])) * time.Millisecond
		reader.Group(address, topic, os.Args[4], number(os.Args[5]), idle)
	}
	told.Done()
}

func number(text string) int64 {
	value, err := strconv.ParseInt(text, 10, 64)
	told.Check(err)
	return value
}
