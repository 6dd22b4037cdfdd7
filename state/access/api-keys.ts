import { type ApiKey, DEFAULT_PROJECT, ZerofleetError } from '../../contracts/index.js';
import { newUlid } from '../../platform/random.js';
import {
  indexKey,
  namedIndex,
  nowText,
  redisCall,
  type StoreContext,
  untilUnchanged,
} from '../core/context.js';
import { readPage } from '../core/listing.js';
import type { ApiKeyInput, ApiKeys } from './api-keys-port.js';
import type { LookUps } from './look-ups.js';
import { hashOf } from './secret-hash.js';

export function apiKeys(context: StoreContext, lookUps: LookUps): ApiKeys {
  const { redis, prefix, commands } = context;
  const ids = `${prefix}:api-keys`;
  const key = (hash: string) => `${prefix}:api-key:${hash}`;

  async function read(ofHash: string): Promise<ApiKey | null> {
    return keyOf(await redisCall(redis.hgetall(key(ofHash))));
  }

  async function get(keyId: string): Promise<ApiKey | null> {
    const hash = await redisCall(redis.hget(ids, keyId));
    return hash === null ? null : read(hash);
  }

  return {
    async putApiKey(secret, input) {
      const { scopes, project = DEFAULT_PROJECT, builtin = false } = input;
      const fields = {
        ...changeable(input),
        scopes: JSON.stringify(scopes),
        project,
        builtin: builtin ? '1' : '',
      };
      const call = { hash: hashOf(secret), key_id: `key_${newUlid()}`, fields, at: nowText() };
      return keyOfReply(await lookUps.change('put_api_key', call));
    },

    // The look-up uses the hash of the secret that was sent, so its duration reveals nothing about stored secrets.
    findApiKey(secret) {
      const hash = hashOf(secret);
      lookUps.watch();
      return lookUps.keys.find(hash, () => read(hash));
    },

    getApiKey: get,

    listApiKeys({ project = DEFAULT_PROJECT, name, ...page } = {}) {
      const index = indexKey(context, project, namedIndex('api-key-ids', name));
      return readPage(context, { indexes: [index], page, load: (found) => Promise.all(found.map(get)) });
    },

    updateApiKey(keyId, change) {
      return untilUnchanged(keyId, async () => {
        const before = await get(keyId);
        if (before === null) return null;
        const after = change(before);
        const call = { key_id: keyId, from: changeable(before), to: changeable(after) };
        const [changed, ...fields] = await lookUps.change('change_api_key', call);
        return changed === '1' ? keyOfReply(fields) : undefined;
      });
    },

    async rotateApiKey(keyId, secret, overlapMs) {
      const call = { key_id: keyId, hash: hashOf(secret), overlap_ms: overlapMs };
      return keyOfReply(await lookUps.change('rotate_api_key', call));
    },

    async revokeApiKey(keyId) {
      const [revoked] = await lookUps.change('revoke_api_key', { key_id: keyId });
      return revoked === '1';
    },

    async touchApiKey(keyId) {
      const at = nowText();
      lookUps.keys.revise((known) => (known.id === keyId ? { ...known, last_used_at: at } : known));
      await commands.run('touch_api_key', { key_id: keyId, at });
    },
  };
}

/** Fields of an API key that may be changed. */
function changeable({ name, expires_at, requests_per_minute }: ApiKeyInput): Record<string, string> {
  return {
    name,
    expires_at: expires_at ?? '',
    requests_per_minute: String(requests_per_minute ?? ''),
  };
}

/** Returns null for an empty record. */
function keyOf(fields: Record<string, string>): ApiKey | null {
  const { id, name, scopes, created_at, project = DEFAULT_PROJECT } = fields;
  if (!id || name === undefined || !scopes || !created_at) return null;
  const until = Number(fields.previous_until ?? 0);
  return {
    id,
    project,
    name,
    scopes: JSON.parse(scopes),
    requests_per_minute: fields.requests_per_minute ? Number(fields.requests_per_minute) : null,
    created_at,
    expires_at: fields.expires_at || null,
    last_used_at: fields.last_used_at ?? null,
    previous_secret_until: until > Date.now() ? new Date(until).toISOString() : null,
    builtin: fields.builtin === '1',
  };
}

function keyOfReply(flat: readonly unknown[]): ApiKey {
  const texts = flat.map(String);
  const fields = Object.fromEntries(
    texts.flatMap((text, at) => (at % 2 === 0 ? [[text, texts[at + 1] ?? '']] : [])),
  );
  const key = keyOf(fields);
  if (key === null) throw new ZerofleetError('internal_error', 'the job store answered without an API key');
  return key;
}
