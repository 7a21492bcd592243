// segmentio/kafka-go as a reader. Usage: read ADDRESS TOPIC [TIME] | group ADDRESS TOPIC GROUP COUNT IDLE_MS
package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"clients/told"
)

const largest = 64 << 20

func main() {
	address, topic := os.Args[2], os.Args[3]
	switch os.Args[1] {
	case "read":
		from := int64(-1)
		if len(os.Args) > 4 {
			from = number(os.Args[4])
		}
		read(address, topic, from)
	case "group":
		idle := time.Duration(number(os.Args[6])) * time.Millisecond
		group(address, topic, os.Args[4], number(os.Args[5]), idle)
	}
	told.Done()
}

func number(text string) int64 {
	value, err := strconv.ParseInt(text, 10, 64)
	told.Check(err)
	return value
}

func read(address, topic string, from int64) {
	ctx := context.Background()
	client := &kafka.Client{Addr: kafka.TCP(address), Timeout: 30 * time.Second}
	metadata, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	told.Check(err)
	for _, partition := range metadata.Topics[0].Partitions {
		start, end := offsets(client, topic, partition.ID, from)
		if start < 0 || start >= end {
			continue
		}
		reader := kafka.NewReader(kafka.ReaderConfig{
			Brokers:        []string{address},
			Topic:          topic,
			Partition:      partition.ID,
			MaxBytes:       largest,
			IsolationLevel: kafka.ReadCommitted,
		})
		told.Check(reader.SetOffset(start))
		wait := 10 * time.Second
		for {
			record, err := next(reader, wait)
			if errors.Is(err, context.DeadlineExceeded) { // what is left are markers, which kafka-go doesn't show
				break
			}
			told.Check(err)
			tell(record)
			if record.Offset+1 >= end {
				break
			}
			wait = 2 * time.Second
		}
		told.Check(reader.Close())
	}
}

func offsets(client *kafka.Client, topic string, partition int, from int64) (int64, int64) {
	ask := func(request kafka.OffsetRequest) kafka.PartitionOffsets {
		answer, err := client.ListOffsets(context.Background(), &kafka.ListOffsetsRequest{
			Topics:         map[string][]kafka.OffsetRequest{topic: {request}},
			IsolationLevel: kafka.ReadCommitted,
		})
		told.Check(err)
		told.Check(answer.Topics[topic][0].Error)
		return answer.Topics[topic][0]
	}
	start, end := ask(kafka.FirstOffsetOf(partition)).FirstOffset, ask(kafka.LastOffsetOf(partition)).LastOffset
	if from >= 0 {
		start = -1
		for offset := range ask(kafka.TimeOffsetOf(partition, time.UnixMilli(from))).Offsets {
			start = offset
		}
	}
	return start, end
}

func next(reader *kafka.Reader, wait time.Duration) (kafka.Message, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return reader.FetchMessage(ctx)
}

func tell(record kafka.Message) {
	headers := []told.Header{}
	for _, header := range record.Headers {
		headers = append(headers, told.Header{Name: header.Key, Value: header.Value})
	}
	told.Tell(told.Record{
		Partition: int32(record.Partition),
		Offset:    record.Offset,
		Kind:      0, // it doesn't show whose time it is
		Time:      record.Time.UnixMilli(),
		Key:       record.Key,
		Value:     record.Value,
		Headers:   headers,
	})
}

func group(address, topic, name string, count int64, idle time.Duration) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:           []string{address},
		Topic:             topic,
		GroupID:           name,
		StartOffset:       kafka.FirstOffset,
		MaxBytes:          largest,
		IsolationLevel:    kafka.ReadCommitted,
		SessionTimeout:    6 * time.Second,
		HeartbeatInterval: 500 * time.Millisecond,
		RebalanceTimeout:  6 * time.Second,
	})
	for seen := int64(0); seen < count; seen++ {
		record, err := next(reader, idle)
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		told.Check(err)
		tell(record)
		told.Check(reader.CommitMessages(context.Background(), record))
	}
	told.Check(reader.Close())
}
