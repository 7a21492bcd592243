package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

var anything = reflect.TypeOf((*any)(nil)).Elem()

// Members in the order of the given value, as a program's structs have them.
func ofStructs(string) (write, error) { return marshalled(true) }

// Objects as maps, whose members are sorted.
func ofMaps(string) (write, error) { return marshalled(false) }

// An encoder that doesn't escape HTML, and ends each value with a line feed.
func ofEncoder(string) (write, error) {
	return func(value []byte) ([]byte, error) {
		datum, err := read(value, true)
		if err != nil {
			return nil, err
		}
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		err = encoder.Encode(datum)
		return text.Bytes(), err
	}, nil
}

func marshalled(structs bool) (write, error) {
	return func(value []byte) ([]byte, error) {
		datum, err := read(value, structs)
		if err != nil {
			return nil, err
		}
		return json.Marshal(datum)
	}, nil
}

func read(value []byte, structs bool) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	return item(decoder, structs)
}

func item(decoder *json.Decoder, structs bool) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Number:
		return number64(string(token))
	case json.Delim:
		if token == '[' {
			return list(decoder, structs)
		}
		return object(decoder, structs)
	default:
		return token, nil
	}
}

func number64(text string) (any, error) {
	if strings.ContainsAny(text, ".eE") {
		return strconv.ParseFloat(text, 64)
	}
	return strconv.ParseInt(text, 10, 64)
}

func list(decoder *json.Decoder, structs bool) (any, error) {
	items := []any{}
	for decoder.More() {
		value, err := item(decoder, structs)
		if err != nil {
			return nil, err
		}
		items = append(items, value)
	}
	_, err := decoder.Token()
	return items, err
}

func object(decoder *json.Decoder, structs bool) (any, error) {
	members := map[string]any{}
	names := []string{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		value, err := item(decoder, structs)
		if err != nil {
			return nil, err
		}
		members[name.(string)] = value
		names = append(names, name.(string))
	}
	_, err := decoder.Token()
	if !structs || !areTags(names) {
		return members, err
	}
	return asStruct(names, members), err
}

// A map's member may have a name that a struct's can't.
func areTags(names []string) bool {
	for _, name := range names {
		if name == "" || name == "-" || strings.ContainsFunc(name, func(r rune) bool {
			return strings.ContainsRune("\\'\",`", r) || !strconv.IsPrint(r)
		}) {
			return false
		}
	}
	return true
}

func asStruct(names []string, members map[string]any) any {
	fields := []reflect.StructField{}
	for at, name := range names {
		tag := reflect.StructTag(fmt.Sprintf(`json:%q`, name))
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("F%d", at), Type: anything, Tag: tag})
	}
	value := reflect.New(reflect.StructOf(fields)).Elem()
	for at, name := range names {
		if members[name] != nil {
			value.Field(at).Set(reflect.ValueOf(members[name]))
		}
	}
	return value.Interface()
}
