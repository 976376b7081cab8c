/**
 * Notifications: the plane's key for push services (its private half encrypted with the key file), subscribed devices,
 * and the newest message per device and tag. Devices are deleted with their user, when their sign-in ends, or when
 * their push service no longer knows them; messages with their device, or after a day.
 */
export const sql = `
CREATE TABLE push_keys (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  public_key TEXT NOT NULL,
  sealed BLOB NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE TABLE push_subscriptions (
  num INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  user_id TEXT NOT NULL REFERENCES users(id) ON DELETE CASCADE,
  token_id TEXT NOT NULL,
  endpoint TEXT NOT NULL UNIQUE,
  p256dh TEXT NOT NULL,
  auth TEXT NOT NULL,
  public_key TEXT NOT NULL,
  user_agent TEXT,
  kinds TEXT NOT NULL,
  with_commands INTEGER NOT NULL,
  of_others INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('active', 'expired')),
  failures INTEGER NOT NULL DEFAULT 0,
  last_error TEXT,
  last_success_at INTEGER,
  retry_at INTEGER,
  created_at INTEGER NOT NULL
);
CREATE INDEX push_subscriptions_user ON push_subscriptions(user_id, num);
CREATE INDEX push_subscriptions_others ON push_subscriptions(num) WHERE of_others = 1;
CREATE TABLE push_messages (
  num INTEGER PRIMARY KEY AUTOINCREMENT,
  subscription_num INTEGER NOT NULL REFERENCES push_subscriptions(num) ON DELETE CASCADE,
  tag TEXT NOT NULL,
  fact_id INTEGER NOT NULL,
  message TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'sent')),
  attempts INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  sent_at INTEGER,
  UNIQUE (subscription_num, tag)
);
CREATE INDEX push_messages_tag ON push_messages(tag);
CREATE INDEX push_messages_expiry ON push_messages(expires_at);
`;
