// Reads messages, a length and a type name and bytes each, and writes them as Go's serializer does.
package main

import (
	"bufio"
	"encoding/binary"
	"io"
	"os"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "producers/claim"
	_ "producers/order"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func read(in *bufio.Reader) ([]byte, error) {
	var size uint32
	if err := binary.Read(in, binary.LittleEndian, &size); err != nil {
		return nil, err
	}
	data := make([]byte, size)
	_, err := io.ReadFull(in, data)
	return data, err
}

func main() {
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for {
		name, err := read(in)
		if err == io.EOF {
			return
		}
		check(err)
		data, err := read(in)
		check(err)
		kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
		check(err)
		message := kind.New().Interface()
		check(proto.Unmarshal(data, message))
		written, err := proto.Marshal(message)
		check(err)
		check(binary.Write(out, binary.LittleEndian, uint32(len(written))))
		_, err = out.Write(written)
		check(err)
	}
}
