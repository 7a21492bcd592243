package main

import (
	hamba "github.com/hamba/avro/v2"
	"github.com/linkedin/goavro/v2"
)

func ofHamba(text string) (write, error) {
	schema, err := hamba.ParseWithCache(text, "", &hamba.SchemaCache{})
	if err != nil {
		return nil, err
	}
	api := hamba.Config{}.Freeze()
	return func(value []byte) ([]byte, error) {
		var datum any
		if err := api.Unmarshal(schema, value, &datum); err != nil {
			return nil, err
		}
		return api.Marshal(schema, datum)
	}, nil
}

func ofGoavro(text string) (write, error) {
	codec, err := goavro.NewCodec(text)
	if err != nil {
		return nil, err
	}
	return func(value []byte) ([]byte, error) {
		datum, _, err := codec.NativeFromBinary(value)
		if err != nil {
			return nil, err
		}
		return codec.BinaryFromNative(nil, datum)
	}, nil
}
