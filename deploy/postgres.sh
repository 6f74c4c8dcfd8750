#!/bin/sh
# Run once, when the database is new: an ordinary role owns it, because row-level security holds for no superuser.
set -eu
psql -v ON_ERROR_STOP=1 -v password="$POSTGRES_PASSWORD" --username "$POSTGRES_USER" --dbname postgres <<'SQL'
CREATE ROLE fanlight LOGIN PASSWORD :'password';
CREATE DATABASE fanlight OWNER fanlight;
SQL
