// Sarama as a reader.
package main

import (
	"context"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"clients/arguments"
	"clients/told"
)

func main() {
	arguments.Run(arguments.Reader{Oldest: sarama.OffsetOldest, Read: read, Group: group})
}

func config() *sarama.Config {
	made := sarama.NewConfig()
	made.Version = sarama.V4_0_0_0
	made.Consumer.IsolationLevel = sarama.ReadCommitted
	made.Consumer.Offsets.Initial = sarama.OffsetOldest
	made.Consumer.Offsets.AutoCommit.Enable = false
	made.Consumer.Group.Session.Timeout = 6 * time.Second
	made.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	made.Consumer.Fetch.Max = 64 << 20
	return made
}

func read(address, topic string, from int64) {
	client, err := sarama.NewClient([]string{address}, config())
	told.Check(err)
	defer client.Close()
	reading, err := sarama.NewConsumerFromClient(client)
	told.Check(err)
	partitions, err := client.Partitions(topic)
	told.Check(err)
	for _, partition := range partitions {
		end, err := client.GetOffset(topic, partition, sarama.OffsetNewest)
		told.Check(err)
		start, err := client.GetOffset(topic, partition, from)
		told.Check(err)
		if start < 0 || start >= end {
			continue
		}
		records, err := reading.ConsumePartition(topic, partition, start)
		told.Check(err)
		wait := time.NewTimer(10 * time.Second)
	partition:
		for {
			select {
			case record := <-records.Messages():
				tell(record)
				if record.Offset+1 >= end {
					break partition
				}
				wait.Reset(2 * time.Second) // what is left may be markers, of which Sarama tells nothing
			case <-wait.C:
				break partition
			}
		}
		told.Check(records.Close())
	}
}

func tell(record *sarama.ConsumerMessage) {
	headers := []told.Header{}
	for _, each := range record.Headers {
		headers = append(headers, told.Header{Name: string(each.Key), Value: each.Value})
	}
	// Sarama shows the broker's time in both fields' stead only where there is one
	told.Tell(told.Record{
		Partition: record.Partition,
		Offset:    record.Offset,
		Kind:      0,
		Time:      record.Timestamp.UnixMilli(),
		Key:       record.Key,
		Value:     record.Value,
		Headers:   headers,
	})
}

type member struct {
	lock  sync.Mutex
	seen  int64
	until time.Time
	idle  time.Duration
}

func (m *member) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (m *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case record, is_open := <-claim.Messages():
			if !is_open {
				return nil
			}
			m.lock.Lock()
			tell(record)
			m.seen++
			m.until = time.Now().Add(m.idle)
			session.MarkMessage(record, "")
			session.Commit()
			m.lock.Unlock()
		case <-session.Context().Done():
			return nil
		}
	}
}

func group(address, topic, name string, count int64, idle time.Duration) {
	reading, err := sarama.NewConsumerGroup([]string{address}, name, config())
	told.Check(err)
	m := &member{idle: idle, until: time.Now().Add(idle)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for ctx.Err() == nil {
			told.Check(reading.Consume(ctx, []string{topic}, m))
		}
	}()
	for {
		time.Sleep(50 * time.Millisecond)
		m.lock.Lock()
		done := m.seen >= count || time.Now().After(m.until)
		m.lock.Unlock()
		if done {
			break
		}
	}
	cancel()
	told.Check(reading.Close())
}
