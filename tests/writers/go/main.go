// Reads each value by its schema and writes it again: write LIBRARY. Framed as tests/java/AvroJudge.java says.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

type write func(value []byte) ([]byte, error)

var libraries = map[string]func(schema string) (write, error){
	"hamba":        ofHamba,
	"goavro":       ofGoavro,
	"json-structs": ofStructs,
	"json-maps":    ofMaps,
	"json-encoder": ofEncoder,
}

var input = bufio.NewReader(os.Stdin)
var output = bufio.NewWriter(os.Stdout)

func number() int {
	var size int32
	check(binary.Read(input, binary.BigEndian, &size))
	return int(size)
}

func frame() []byte {
	data := make([]byte, number())
	_, err := io.ReadFull(input, data)
	check(err)
	return data
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	for cases := number(); cases > 0; cases-- {
		written, err := libraries[os.Args[1]](string(frame()))
		if err != nil {
			fmt.Fprintln(os.Stderr, os.Args[1], "refuses a schema:", err)
		}
		for values := number(); values > 0; values-- {
			answer(written, frame())
		}
	}
	check(output.Flush())
}

func answer(written write, value []byte) {
	var data []byte
	err := io.EOF
	if written != nil {
		if data, err = attempt(written, value); err != nil {
			fmt.Fprintln(os.Stderr, os.Args[1], "refuses a value:", err)
		}
	}
	size := int32(len(data))
	if err != nil {
		size, data = -1, nil
	}
	check(binary.Write(output, binary.BigEndian, size))
	_, err = output.Write(data)
	check(err)
}

// Libraries panic for values of some types.
func attempt(written write, value []byte) (data []byte, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("%v", problem)
		}
	}()
	return written(value)
}
