import psycopg
import pytest
from obstore.store import from_url


@pytest.mark.postgres
def test_a_fresh_database_is_empty_and_is_gone_afterwards(postgres_server):
    url = postgres_server.database()
    with psycopg.connect(url) as connection:
        assert connection.execute("select count(*) from pg_tables where schemaname = 'public'").fetchone() == (0,)
    postgres_server.drop(url)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(url)


@pytest.mark.postgres
def test_databases_of_two_tests_are_two(postgres_server, postgres_url):
    assert postgres_server.database() != postgres_url


def test_a_bucket_keeps_what_is_put(s3_bucket, monkeypatch):
    for name, value in s3_bucket.env.items():
        monkeypatch.setenv(name, value)
    store = from_url(s3_bucket.url, client_options={"allow_http": True})
    store.put("a/b", b"bytes")
    assert bytes(store.get("a/b").bytes()) == b"bytes"
