"""Security from the configuration."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from jwt import PyJWK

from archiver.access.accounts import RegistryUsers
from archiver.access.principals import ANONYMOUS, Principal
from archiver.access.rules import Access, rules_in
from archiver.access.users import KnownUsers, Users
from archiver.config import Config
from archiver.config.serve_security import OauthSection, TlsSection
from archiver.errors import ConfigError, ServeError
from archiver.serve.security.certificates import ServerCertificates, TlsFiles, principal_of_certificate
from archiver.serve.security.exchanges import Mechanisms
from archiver.serve.security.quotas import Quota, Quotas
from archiver.serve.security.session import Session
from archiver.serve.security.token_keys import TokenKeys, config_error, keys_at, keys_in
from archiver.serve.security.tokens import TokenRules, Tokens
from schema_mapping.errors import ContextError

_THREADS: Final = 2
"""Threads that hash passwords: guessing them takes no more of the machine than this."""
_LOADING_THREADS: Final = 3
"""Threads for users, keys and certificates, one each: none waits for another, nor for passwords."""


class Security:
    """Use it within the server's event loop."""

    def __init__(self, config: Config, *, is_loopback: bool) -> None:
        """`is_loopback`: only this machine reaches the server. Raises ConfigError, which names the key."""
        section = config.serve
        tls, sasl = section.tls, section.sasl
        self._check(config, is_loopback=is_loopback)
        self._registry = RegistryUsers(config.registry.dsn)
        self._name_from = tls.principal if tls else "dn"
        self._needs_certificate = tls is not None and tls.client_ca is not None
        self._rules = rules_in(section.acls)
        self.quotas = Quotas(
            Quota(
                principal=quota.principal,
                requests_per_second=quota.requests_per_second,
                bytes_per_second=quota.bytes_per_second,
                groups=quota.groups,
                member_memory=quota.member_memory,
                offset_groups=quota.offset_groups,
                offset_size=quota.offset_size,
            )
            for quota in section.quotas
        )
        self.certificates = ServerCertificates(_files(tls)) if tls else None
        self._look_seconds = tls.reload if tls else 0.0
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="security")
        self._loading = ThreadPoolExecutor(_LOADING_THREADS, thread_name_prefix="security-loading")
        self._users = Users(self._load) if sasl and set(sasl.mechanisms) != {"OAUTHBEARER"} else None
        self._keys = self._token_keys(section.oauth) if section.oauth else None
        self._mechanisms: Mechanisms | None = None
        self._lifetime = 0.0
        self._looking: asyncio.Task[None] | None = None
        if sasl is not None:
            self._lifetime = sasl.session_lifetime
            self._mechanisms = Mechanisms(
                enabled=tuple(dict.fromkeys(sasl.mechanisms)),
                users=self._users,
                tokens=Tokens(_token_rules(section.oauth), self._keys) if section.oauth and self._keys else None,
                hashing=self._threads,
            )

    @property
    def context(self) -> ssl.SSLContext | None:
        return self.certificates.context if self.certificates else None

    async def begin(self) -> None:
        """Raises ConfigError if users or keys can't be loaded."""
        if self._users is not None:
            try:
                await self._users.begin()
            except ContextError as error:
                raise ConfigError(
                    f"users are kept in the registry, which can't be asked: {error.message}",
                    **{"key": "serve.sasl.mechanisms", **error.context},
                ) from error
        if self._keys is not None:
            try:
                await self._keys.begin()
            except ServeError as error:
                raise config_error(error, "serve.oauth") from error
        if self.certificates is not None:
            self._looking = asyncio.get_running_loop().create_task(self._look(self.certificates))

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        for source in (self._users, self._keys):
            if source is not None:
                await source.close()
        self._threads.shutdown(cancel_futures=True)
        self._loading.shutdown(cancel_futures=True)
        self._registry.close()

    def session(self, certificate: bytes | None) -> Session:
        principal: Principal | None = ANONYMOUS
        if self._needs_certificate:
            principal = principal_of_certificate(certificate, self._name_from) if certificate else None
        return Session(
            mechanisms=self._mechanisms,
            access_of=lambda client: Access(client, self._rules),
            principal=principal,
            most_seconds=self._lifetime,
        )

    async def _load(self) -> KnownUsers:
        return await asyncio.get_running_loop().run_in_executor(self._loading, self._registry.load)

    def _token_keys(self, section: OauthSection) -> TokenKeys:
        def look() -> Sequence[PyJWK]:
            if section.jwks_file is not None:
                return keys_in(section.jwks_file)
            return keys_at(section.jwks_url or "", section.ca_file)

        async def load() -> Sequence[PyJWK]:
            return await asyncio.get_running_loop().run_in_executor(self._loading, look)

        return TokenKeys(load, kept_seconds=section.keys_ttl)

    async def _look(self, certificates: ServerCertificates) -> None:
        while True:
            await asyncio.sleep(self._look_seconds)
            await asyncio.get_running_loop().run_in_executor(self._loading, certificates.look)

    @staticmethod
    def _check(config: Config, *, is_loopback: bool) -> None:
        section = config.serve
        tls, sasl = section.tls, section.sasl
        is_known = sasl is not None or (tls is not None and tls.client_ca is not None)
        if sasl is not None:
            if "PLAIN" in sasl.mechanisms and tls is None and not sasl.plain_without_tls:
                raise ConfigError(
                    "PLAIN sends passwords as they are: add [serve.tls], choose SCRAM-SHA-512, or set"
                    " `plain_without_tls = true` where nobody can listen",
                    key="serve.sasl.mechanisms",
                )
            if ("OAUTHBEARER" in sasl.mechanisms) != (section.oauth is not None):
                raise ConfigError(
                    "OAUTHBEARER and [serve.oauth], which says what tokens are taken, go together",
                    key="serve.oauth" if section.oauth is None else "serve.sasl.mechanisms",
                )
        elif section.oauth is not None:
            raise ConfigError('add [serve.sasl] with mechanisms = ["OAUTHBEARER"]', key="serve.sasl")
        if is_known and section.allow_anonymous:
            raise ConfigError(
                "clients have to show who they are, so nobody is anonymous: leave this out", key="serve.allow_anonymous"
            )
        if section.acls and not is_known and not section.allow_anonymous:
            raise ConfigError(
                "rules need to know who a client is: add [serve.sasl], or `client_ca` in [serve.tls]. With"
                " `allow_anonymous = true` they may speak of User:ANONYMOUS",
                key="serve.acls",
            )
        if not is_known and not is_loopback and not section.allow_anonymous:
            raise ConfigError(
                "whoever reaches this address could read every archived topic: listen on 127.0.0.1, let clients show"
                " who they are ([serve.sasl], or `client_ca` in [serve.tls]), or set `allow_anonymous = true` where"
                " the network lets only the right ones through",
                key="serve.allow_anonymous",
            )


def _files(section: TlsSection) -> TlsFiles:
    return TlsFiles(
        certificate=section.certificate,
        key=section.key,
        key_password=section.key_password,
        client_ca=section.client_ca,
        least_version=section.least_version,
    )


def _token_rules(section: OauthSection) -> TokenRules:
    return TokenRules(
        issuer=section.issuer,
        audiences=section.audience,
        algorithms=section.algorithms,
        principal_claim=section.principal_claim,
        clock_skew=section.clock_skew,
    )
