import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A member of a share group (KIP-932). Usage: ADDRESS TOPIC GROUP. Prints what polling ends with. */
public class ShareReader {
    public static void main(String[] args) {
        Properties options = new Properties();
        options.put("bootstrap.servers", args[0]);
        options.put("group.id", args[2]);
        options.put("key.deserializer", ByteArrayDeserializer.class);
        options.put("value.deserializer", ByteArrayDeserializer.class);
        long began = System.nanoTime();
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(options)) {
            consumer.subscribe(List.of(args[1]));
            while (System.nanoTime() - began < 30_000_000_000L) {
                int count = consumer.poll(Duration.ofMillis(500)).count();
                if (count > 0) {
                    System.out.println(count + " records");
                    return;
                }
            }
            System.out.println("nothing");
        } catch (Exception error) {
            System.out.println(error.getClass().getSimpleName());
        }
    }
}
