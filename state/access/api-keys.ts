import {
  type ApiKey,
  DEFAULT_PROJECT,
  type Page,
  type Scope,
  ZerofleetError,
} from '../../contracts/index.js';
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
import type { NamedPageRequest } from '../core/paging.js';
import type { LookUps } from './look-ups.js';
import { hashOf } from './secret-hash.js';

interface ApiKeyInput {
  name: string;
  scopes: Scope[];
  /** Project that the key has access to; 'default' when absent. */
  project?: string;
  /** RFC 3339. */
  expires_at?: string | null;
  requests_per_minute?: number | null;
  /** The key comes from the configuration of a server, which writes it at each start. */
  builtin?: boolean;
}

export type ApiKeys = ReturnType<typeof apiKeys>;

export function apiKeys(context: StoreContext, lookUps: LookUps) {
  const { redis, prefix, commands } = context;
  const ids = `${prefix}:api-keys`;
  const key = (hash: string) => `${prefix}:api-key:${hash}`;

  async function read(ofHash: string): Promise<ApiKey | null> {
    return keyOf(await redisCall(redis.hgetall(key(ofHash))));
  }

  async function getApiKey(keyId: string): Promise<ApiKey | null> {
    const hash = await redisCall(redis.hget(ids, keyId));
    return hash === null ? null : read(hash);
  }

  return {
    /**
     * Accepts `secret` from now on; only its SHA-256 is stored. Repeating the call with the same secret
     * replaces all fields but id and creation time.
     */
    async putApiKey(secret: string, input: ApiKeyInput): Promise<ApiKey> {
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

    /**
     * Returns null when the secret is unknown or no longer valid for its key. The caller checks whether the
     * key has expired.
     */
    findApiKey(secret: string): Promise<ApiKey | null> {
      // The look-up uses the hash of the secret that was sent, so its duration reveals nothing about stored
      // secrets.
      const hash = hashOf(secret);
      lookUps.watch();
      return lookUps.keys.find(hash, () => read(hash));
    },

    getApiKey,

    /** Lists the keys of one project, newest first. */
    listApiKeys({ project = DEFAULT_PROJECT, name, ...page }: NamedPageRequest = {}): Promise<Page<ApiKey>> {
      const index = indexKey(context, project, namedIndex('api-key-ids', name));
      return readPage(context, {
        indexes: [index],
        page,
        load: (found) => Promise.all(found.map(getApiKey)),
      });
    },

    /**
     * Sets the name, expiry and rate limit that `change` returns, for all secrets of the key. `change` may be
     * called more than once. Returns null when the key is unknown.
     * @throws `api_key_builtin`
     */
    updateApiKey(keyId: string, change: (before: ApiKey) => ApiKey): Promise<ApiKey | null> {
      return untilUnchanged(keyId, async () => {
        const before = await getApiKey(keyId);
        if (before === null) return null;
        const after = change(before);
        const call = { key_id: keyId, from: changeable(before), to: changeable(after) };
        const [changed, ...fields] = await lookUps.change('change_api_key', call);
        return changed === '1' ? keyOfReply(fields) : undefined;
      });
    },

    /**
     * Makes `secret` the key's current secret. The previous secret is accepted for `overlapMs` more; older
     * secrets are rejected at once. Without an overlap, the key's browser sessions end as well: they may have
     * begun with the previous secret.
     * @throws `api_key_not_found`, `api_key_builtin`
     */
    async rotateApiKey(keyId: string, secret: string, overlapMs: number): Promise<ApiKey> {
      const call = { key_id: keyId, hash: hashOf(secret), overlap_ms: overlapMs };
      return keyOfReply(await lookUps.change('rotate_api_key', call));
    },

    /** Ends the key and its browser sessions. Returns false when the key was unknown. */
    async revokeApiKey(keyId: string): Promise<boolean> {
      const [revoked] = await lookUps.change('revoke_api_key', { key_id: keyId });
      return revoked === '1';
    },

    /** Records that the key was used now. */
    async touchApiKey(keyId: string): Promise<void> {
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
