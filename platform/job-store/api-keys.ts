import { createHash } from 'node:crypto';
import { ulid } from 'ulid';
import { DEFAULT_PROJECT } from '../../contracts/index.js';
import { nowText, redisCall, type StoreContext } from './context.js';
import type { ApiKey, ApiKeys } from './port.js';

export function apiKeys(context: StoreContext): ApiKeys {
  const { redis, prefix, commands } = context;
  const ids = `${prefix}:api-keys`;
  const key = (hash: string) => `${prefix}:api-key:${hash}`;

  async function read(hash: string): Promise<ApiKey | null> {
    const {
      id,
      name,
      scopes,
      project = DEFAULT_PROJECT,
      created_at,
    } = await redisCall(redis.hgetall(key(hash)));
    if (!id || name === undefined || !scopes || !created_at) return null;
    return { id, name, scopes: JSON.parse(scopes), project, created_at };
  }

  return {
    async putApiKey(secret, { name, scopes, project = DEFAULT_PROJECT }) {
      const reply = await commands.run('put_api_key', {
        hash: hashOf(secret),
        key_id: `key_${ulid()}`,
        name,
        scopes: JSON.stringify(scopes),
        project,
        at: nowText(),
      });
      const [id, created_at] = reply as [string, string];
      return { id, name, scopes, project, created_at };
    },

    // Found by the hash of what was sent: how long that takes says nothing about the secrets that are stored.
    findApiKey: (secret) => read(hashOf(secret)),

    async listApiKeys() {
      const hashes = await redisCall(redis.hvals(ids));
      const keys = await Promise.all(hashes.map(read));
      return keys.filter((found) => found !== null).sort((a, b) => (a.id < b.id ? -1 : 1));
    },

    async revokeApiKey(keyId) {
      const hash = await redisCall(redis.hget(ids, keyId));
      if (hash === null) return false;
      await redisCall(redis.multi().del(key(hash)).hdel(ids, keyId).exec());
      return true;
    },
  };
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}
