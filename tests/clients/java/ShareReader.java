import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Kafka's share consumer (KIP-932). Usage: ADDRESS TOPIC GROUP. Prints the error that ends it, if one does. */
public class ShareReader {
    public static void main(String[] args) {
        Properties options = new Properties();
        options.put("bootstrap.servers", args[0]);
        options.put("group.id", args[2]);
        options.put("key.deserializer", ByteArrayDeserializer.class);
        options.put("value.deserializer", ByteArrayDeserializer.class);
        try (KafkaShareConsumer<byte[], byte[]> reading = new KafkaShareConsumer<>(options)) {
            reading.subscribe(List.of(args[1]));
            for (int round = 0; round < 30; round++) {
                reading.poll(Duration.ofSeconds(1));
            }
            System.out.println("{\"error\": null}");
        } catch (Exception error) {
            System.out.println("{\"error\": \"" + error.getClass().getSimpleName() + "\"}");
        }
        System.exit(0);
    }
}
