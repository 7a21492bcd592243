"""Addresses and credentials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from archiver.local import kafka, postgres, seaweedfs
from archiver.local.state import StackState


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """All addresses and credentials."""

    directory: Path
    config_path: Path
    bootstrap_servers: str
    catalog_uri: str
    warehouse: str
    s3_endpoint: str
    s3_region: str
    bucket: str
    access_key: str
    secret_key: str = field(repr=False)
    postgres_dsn: str = field(repr=False)

    @property
    def catalog_properties(self) -> Mapping[str, str]:
        """For pyiceberg's `load_catalog` and Spark's Iceberg catalog."""
        return {
            "uri": self.catalog_uri,
            "warehouse": self.warehouse,
            "credential": f"{self.access_key}:{self.secret_key}",
            "oauth2-server-uri": f"{self.catalog_uri}/v1/oauth/tokens",
            **self.s3_properties,
        }

    @property
    def s3_properties(self) -> Mapping[str, str]:
        return {
            "s3.endpoint": self.s3_endpoint,
            "s3.access-key-id": self.access_key,
            "s3.secret-access-key": self.secret_key,
            "s3.region": self.s3_region,
            "s3.path-style-access": "true",
        }

    def public(self) -> dict[str, str]:
        return {
            "config": str(self.config_path),
            "kafka": self.bootstrap_servers,
            "catalog": self.catalog_uri,
            "warehouse": self.warehouse,
            "s3": self.s3_endpoint,
            "bucket": self.bucket,
            "postgres": f"postgresql://{self.postgres_dsn.rpartition('@')[2]}",
        }

    def secrets(self) -> dict[str, str]:
        return {"postgres_dsn": self.postgres_dsn, "access_key": self.access_key, "secret_key": self.secret_key}


def endpoints_of(directory: Path, config_path: Path, state: StackState) -> Endpoints:
    return Endpoints(
        directory=directory,
        config_path=config_path,
        bootstrap_servers=kafka.bootstrap_servers(state),
        catalog_uri=seaweedfs.catalog_uri(state),
        warehouse=f"s3://{seaweedfs.TABLE_BUCKET}",
        s3_endpoint=seaweedfs.s3_endpoint(state),
        s3_region=seaweedfs.REGION,
        bucket=seaweedfs.BUCKET,
        access_key=state.access_key,
        secret_key=state.secret_key,
        postgres_dsn=postgres.dsn(state),
    )
