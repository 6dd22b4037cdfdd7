import type { Share } from '../../contracts/index.js';
import { newUlid } from '../../platform/random.js';
import { nowText, redisCall, type StoreContext } from '../core/context.js';
import type { LookUps } from './look-ups.js';
import type { Principal } from './principals-port.js';
import { hashOf } from './secret-hash.js';
import type { Shares } from './shares-port.js';

const MAX_SHARES = 50;

export interface ShareLookUps {
  findShare(token: string): Promise<Principal | null>;
  getShare(shareId: string): Promise<Principal | null>;
}

export function shares(context: StoreContext, lookUps: LookUps): Shares & ShareLookUps {
  const { redis, prefix } = context;

  async function read(id: string): Promise<Principal | null> {
    return principalOf(id, await redisCall(redis.hgetall(`${prefix}:principal:${id}`)));
  }

  return {
    async createShare(token, { job_id, description, life_ms }) {
      const id = `shr_${newUlid()}`;
      const created_at = nowText();
      const call = { share_id: id, hash: hashOf(token), job_id, description, created_at, life_ms };
      const [ends_at] = await lookUps.change('create_share', { ...call, limit: MAX_SHARES });
      return { id, job_id, description, created_at, expires_at: timeText(ends_at) };
    },

    async listShares(jobId) {
      const ids = await redisCall(redis.zrange(`${prefix}:job:${jobId}:shares`, '0', '-1'));
      const found = await Promise.all(ids.sort().reverse().map(read));
      return found.flatMap((principal) => principal?.share ?? []);
    },

    async revokeShare(job_id, share_id) {
      const [revoked] = await lookUps.change('revoke_share', { job_id, share_id });
      return revoked === '1';
    },

    findShare(token) {
      const hash = hashOf(token);
      lookUps.watch();
      return lookUps.shares.find(hash, async () => {
        const id = await redisCall(redis.get(`${prefix}:share:${hash}`));
        return id === null ? null : read(id);
      });
    },

    getShare: (shareId) => lookUps.shares.find(shareId, () => read(shareId)),
  };
}

/** Returns null for an empty record. */
function principalOf(id: string, fields: Record<string, string>): Principal | null {
  const { job_id, project, description, created_at, expires_at: ends_at } = fields;
  if (!job_id || !project || description === undefined || !created_at) return null;
  const expires_at = timeText(ends_at);
  const share: Share = { id, job_id, description, created_at, expires_at };
  const rights = { scopes: ['jobs:read' as const], requests_per_minute: null };
  return { id, name: description, project, ...rights, expires_at, api_key: null, share, user: null };
}

function timeText(ms: unknown): string {
  return new Date(Number(ms)).toISOString();
}
