import t from 'tap';
import {
  GIB,
  keyPatchOf,
  keyRequestOf,
  localOf,
  overlapOf,
  quotaOf,
  timeOf,
  webhookSpecOf,
} from './fields.js';

function formOf(fields: Record<string, string | string[]>): FormData {
  const form = new FormData();
  for (const [name, values] of Object.entries(fields))
    for (const value of [values].flat()) form.append(name, value);
  return form;
}

/** The request as it is sent. */
const sent = (value: object) => JSON.parse(JSON.stringify(value));

t.test('a key', async (t) => {
  const empty = { name: ' ci ', project: '', expires_at: '', requests_per_minute: '' };
  t.strictSame(sent(keyRequestOf(formOf({ ...empty, scopes: ['jobs:read', 'models'] }))), {
    name: 'ci',
    scopes: ['jobs:read', 'models'],
  });
  const full = { name: 'ci', project: 'b', expires_at: '2027-01-31T08:00', requests_per_minute: '60' };
  t.strictSame(sent(keyRequestOf(formOf(full))), {
    name: 'ci',
    scopes: [],
    project: 'b',
    expires_at: new Date(2027, 0, 31, 8).toISOString(),
    requests_per_minute: 60,
  });
  t.equal(timeOf('soon'), undefined);
});

t.test('a change of a key has what was changed', async (t) => {
  const expiresAt = new Date(2027, 0, 31, 8, 5, 12, 345).toISOString();
  const key = { name: 'ci', expires_at: expiresAt, requests_per_minute: 60 };
  const fields = { name: 'ci', expires_at: '2027-01-31T08:05', requests_per_minute: '60' };
  t.equal(localOf(expiresAt), fields.expires_at);
  t.strictSame(keyPatchOf(formOf(fields), key), {}, 'seconds are no change');
  t.strictSame(keyPatchOf(formOf({ ...fields, name: ' cd ' }), key), { name: 'cd' });
  t.strictSame(keyPatchOf(formOf({ ...fields, expires_at: '', requests_per_minute: '' }), key), {
    expires_at: null,
    requests_per_minute: null,
  });
  t.strictSame(keyPatchOf(formOf({ ...fields, expires_at: '2028-01-31T08:05' }), key), {
    expires_at: new Date(2028, 0, 31, 8, 5).toISOString(),
  });
  const bare = { name: 'ci', expires_at: null, requests_per_minute: null };
  t.strictSame(keyPatchOf(formOf({ name: 'ci', expires_at: '', requests_per_minute: '' }), bare), {});
});

t.test('an overlap, also none', async (t) => {
  t.equal(overlapOf(formOf({ overlap_seconds: '0' })), 0);
  t.equal(overlapOf(formOf({ overlap_seconds: '3600' })), 3600);
});

t.test('a webhook', async (t) => {
  const fields = { url: 'https://a.example', description: '', jobs: 'named' };
  t.strictSame(webhookSpecOf(formOf({ ...fields, events: ' job.state, checkpoint.*\n' })), {
    ...fields,
    events: ['job.state', 'checkpoint.*'],
  });
});

t.test('a quota', async (t) => {
  t.strictSame(quotaOf(formOf({ max_jobs: '0', max_ranks: '', max_storage: '1.5' })), {
    max_jobs: 0,
    max_ranks: null,
    max_storage_bytes: 1.5 * GIB,
  });
  t.strictSame(quotaOf(formOf({})), { max_jobs: null, max_ranks: null, max_storage_bytes: null });
  for (const bytes of [1e12, 1, 999_999_999_999_999]) {
    const shown = String(bytes / GIB);
    t.equal(quotaOf(formOf({ max_storage: shown })).max_storage_bytes, bytes, 'an untouched limit stays');
  }
});
