import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.security.auth.Subject;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.CallbackHandler;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.spi.LoginModule;
import javax.security.sasl.SaslException;
import javax.security.sasl.SaslServer;
import javax.security.sasl.SaslServerFactory;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerExtensionsValidatorCallback;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;

/**
 * Amazon MSK's logins by IAM in a Kafka broker: the mechanism AWS_MSK_IAM, and OAUTHBEARER with signed addresses as
 * tokens (github.com/aws/aws-msk-iam-auth, README, "Details"). Signatures are checked by AWS Signature Version 4 as
 * docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html describes it.
 *
 * The JAAS option `accounts` names a file of lines: access key, secret key, region, and a session token or `-`.
 */
public final class MskIam {
    static final Duration MOST = Duration.ofMinutes(15);
    static final DateTimeFormatter STAMP =
        DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'").withZone(ZoneOffset.UTC);

    /** Return the access key of a login, and refuse a wrong one as MSK does: without the reason. */
    static String verified(Map<String, String> login, String host, String accounts) {
        String reason = refusal(login, host, accounts);
        if (reason != null) {
            System.out.println("MskIam refuses: " + reason);
            throw new SaslAuthenticationException("[5f2a9c1e]: Access denied");
        }
        return login.get("x-amz-credential").split("/")[0];
    }

    private static String refusal(Map<String, String> login, String host, String accounts) {
        String[] scope = login.getOrDefault("x-amz-credential", "").split("/");
        if (scope.length != 5 || !scope[3].equals("kafka-cluster") || !scope[4].equals("aws4_request")) {
            return "scope " + String.join("/", scope);
        }
        String[] account = account(scope[0], accounts);
        if (account == null) {
            return "access key " + scope[0];
        }
        if (!scope[2].equals(account[2])) {
            return "region " + scope[2];
        }
        if (!"kafka-cluster:Connect".equals(login.get("action"))) {
            return "action " + login.get("action");
        }
        String token = login.getOrDefault("x-amz-security-token", "-");
        if (!token.equals(account[3])) {
            return "session token";
        }
        Instant signed = Instant.from(STAMP.parse(login.get("x-amz-date")));
        Duration life = Duration.ofSeconds(Long.parseLong(login.get("x-amz-expires")));
        Instant now = Instant.now();
        if (life.compareTo(MOST) > 0 || now.isAfter(signed.plus(life)) || now.isBefore(signed.minus(MOST))) {
            return "time " + signed;
        }
        try {
            String expected = signature(login, host, scope, account[1]);
            return expected.equals(login.get("x-amz-signature")) ? null : "signature for host " + host;
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    private static String[] account(String key, String accounts) {
        try {
            for (String line : Files.readAllLines(Path.of(accounts))) {
                String[] account = line.split(" ");
                if (account[0].equals(key)) {
                    return account;
                }
            }
            return null;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static String signature(Map<String, String> login, String host, String[] scope, String secret)
        throws GeneralSecurityException {
        Map<String, String> query = new TreeMap<>();
        query.put("Action", login.get("action"));
        query.put("X-Amz-Algorithm", "AWS4-HMAC-SHA256");
        query.put("X-Amz-Credential", login.get("x-amz-credential"));
        query.put("X-Amz-Date", login.get("x-amz-date"));
        query.put("X-Amz-Expires", login.get("x-amz-expires"));
        query.put("X-Amz-SignedHeaders", "host");
        if (login.containsKey("x-amz-security-token")) {
            query.put("X-Amz-Security-Token", login.get("x-amz-security-token"));
        }
        StringBuilder text = new StringBuilder();
        query.forEach((name, value) ->
            text.append(text.isEmpty() ? "" : "&").append(encoded(name)).append('=').append(encoded(value)));
        String request = String.join("\n", "GET", "/", text, "host:" + host, "", "host", hash(""));
        String day = String.join("/", scope[1], scope[2], scope[3], scope[4]);
        String toSign = String.join("\n", "AWS4-HMAC-SHA256", login.get("x-amz-date"), day, hash(request));
        byte[] key = ("AWS4" + secret).getBytes(StandardCharsets.UTF_8);
        for (String part : List.of(scope[1], scope[2], scope[3], scope[4], toSign)) {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(key, "HmacSHA256"));
            key = mac.doFinal(part.getBytes(StandardCharsets.UTF_8));
        }
        return HexFormat.of().formatHex(key);
    }

    private static String hash(String text) throws GeneralSecurityException {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        return HexFormat.of().formatHex(digest.digest(text.getBytes(StandardCharsets.UTF_8)));
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20").replace("%7E", "~");
    }

    /** The login module of AWS_MSK_IAM. It brings the mechanism. */
    public static final class Login implements LoginModule {
        static {
            java.security.Security.addProvider(new Provider());
        }

        @Override
        public void initialize(Subject subject, CallbackHandler handler, Map<String, ?> state, Map<String, ?> options) {
        }

        @Override
        public boolean login() {
            return true;
        }

        @Override
        public boolean commit() {
            return true;
        }

        @Override
        public boolean abort() {
            return false;
        }

        @Override
        public boolean logout() {
            return true;
        }
    }

    public static final class Provider extends java.security.Provider {
        public Provider() {
            super("MskIam", "1", "AWS_MSK_IAM for tests");
            put("SaslServerFactory.AWS_MSK_IAM", Factory.class.getName());
        }
    }

    public static final class Factory implements SaslServerFactory {
        @Override
        public SaslServer createSaslServer(
            String mechanism, String protocol, String server, Map<String, ?> properties, CallbackHandler handler) {
            return new Server((Accounts) handler);
        }

        @Override
        public String[] getMechanismNames(Map<String, ?> properties) {
            return new String[] {"AWS_MSK_IAM"};
        }
    }

    /** The callback handler of both mechanisms: it has the accounts, and validates tokens. */
    public static final class Accounts implements AuthenticateCallbackHandler {
        String file;

        @Override
        public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
            file = (String) entries.get(0).getOptions().get("accounts");
        }

        @Override
        public void close() {
        }

        @Override
        public void handle(Callback[] callbacks) throws UnsupportedCallbackException {
            for (Callback callback : callbacks) {
                if (callback instanceof OAuthBearerValidatorCallback validation) {
                    try {
                        validation.token(token(validation.tokenValue()));
                    } catch (SaslAuthenticationException error) {
                        validation.error("invalid_token", null, null);
                    }
                } else if (callback instanceof OAuthBearerExtensionsValidatorCallback extensions) {
                    extensions.inputExtensions().map().keySet().forEach(extensions::valid);
                } else {
                    throw new UnsupportedCallbackException(callback);
                }
            }
        }

        private OAuthBearerToken token(String value) {
            URI address = URI.create(new String(Base64.getUrlDecoder().decode(value), StandardCharsets.UTF_8));
            Map<String, String> login = new TreeMap<>();
            for (String pair : address.getRawQuery().split("&")) {
                String[] both = pair.split("=", 2);
                login.put(
                    URLDecoder.decode(both[0], StandardCharsets.UTF_8).toLowerCase(),
                    URLDecoder.decode(both[1], StandardCharsets.UTF_8));
            }
            String key = verified(login, address.getHost(), file);
            if (!address.getHost().equals("kafka." + login.get("x-amz-credential").split("/")[2] + ".amazonaws.com")) {
                throw new SaslAuthenticationException("host");
            }
            Instant signed = Instant.from(STAMP.parse(login.get("x-amz-date")));
            long until = signed.plusSeconds(Long.parseLong(login.get("x-amz-expires"))).toEpochMilli();
            return new Token(value, key, until, signed.toEpochMilli());
        }
    }

    record Token(String value, String principalName, long lifetimeMs, Long startTimeMs) implements OAuthBearerToken {
        @Override
        public Set<String> scope() {
            return Set.of();
        }
    }

    static final class Server implements SaslServer {
        private final Accounts accounts;
        private String principal;

        Server(Accounts accounts) {
            this.accounts = accounts;
        }

        @Override
        @SuppressWarnings("unchecked")
        public byte[] evaluateResponse(byte[] response) throws SaslException {
            Map<String, String> login;
            try {
                login = new ObjectMapper().readValue(response, TreeMap.class);
            } catch (IOException error) {
                throw new SaslException("no JSON", error);
            }
            if (!"2020_10_22".equals(login.get("version"))) {
                throw new SaslException("version " + login.get("version"));
            }
            // A broker of MSK knows its names; this one has the address that its client connected to.
            if (!"127.0.0.1".equals(login.get("host"))) {
                throw new SaslAuthenticationException("[5f2a9c1e]: Access denied");
            }
            principal = verified(login, login.get("host"), accounts.file);
            return "{\"version\":\"2020_10_22\",\"request-id\":\"5f2a9c1e\"}".getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public String getMechanismName() {
            return "AWS_MSK_IAM";
        }

        @Override
        public boolean isComplete() {
            return principal != null;
        }

        @Override
        public String getAuthorizationID() {
            return principal;
        }

        @Override
        public Object getNegotiatedProperty(String name) {
            return null;
        }

        @Override
        public byte[] wrap(byte[] bytes, int offset, int length) {
            throw new IllegalStateException();
        }

        @Override
        public byte[] unwrap(byte[] bytes, int offset, int length) {
            throw new IllegalStateException();
        }

        @Override
        public void dispose() {
        }
    }
}
