import type { Share } from '../../contracts/index.js';
import { newUlid } from '../../platform/random.js';
import { nowText, redisCall, type StoreContext } from '../core/context.js';
import type { LookUps, Principal } from './look-ups.js';
import { hashOf } from './secret-hash.js';

/** Begin of the token of a share. */
export const SHARE_TOKEN = 'zf_share_';

interface ShareInput {
  job_id: string;
  description: string;
  life_ms: number;
}

const MAX_SHARES = 50;

/**
 * Shares: tokens that read one job until they expire. Only the SHA-256 of a token is stored, in Redis only. A
 * share ends with its job; its browser sessions end with it.
 */
export type Shares = ReturnType<typeof shares>;

export function shares(context: StoreContext, lookUps: LookUps) {
  const { redis, prefix } = context;

  async function read(id: string): Promise<Principal | null> {
    return principalOf(id, await redisCall(redis.hgetall(`${prefix}:principal:${id}`)));
  }

  return {
    /** @throws `job_not_found`, `too_many_shares` */
    async createShare(token: string, { job_id, description, life_ms }: ShareInput): Promise<Share> {
      const id = `shr_${newUlid()}`;
      const createdAt = nowText();
      const call = { share_id: id, hash: hashOf(token), job_id, description, created_at: createdAt, life_ms };
      const [endsAt] = await lookUps.change('create_share', { ...call, limit: MAX_SHARES });
      return { id, job_id, description, created_at: createdAt, expires_at: timeText(endsAt) };
    },

    /** Returns the shares of a job that have not ended, newest first. */
    async listShares(jobId: string): Promise<Share[]> {
      const ids = await redisCall(redis.zrange(`${prefix}:job:${jobId}:shares`, '0', '-1'));
      const found = await Promise.all(ids.sort().reverse().map(read));
      return found.flatMap((principal) => principal?.share ?? []);
    },

    /** Ends a share with its sessions. Returns false when the job has no such share. */
    async revokeShare(jobId: string, shareId: string): Promise<boolean> {
      const [revoked] = await lookUps.change('revoke_share', { job_id: jobId, share_id: shareId });
      return revoked === '1';
    },

    /** Returns null when the token is unknown, or the share has ended. */
    findShare(token: string): Promise<Principal | null> {
      const hash = hashOf(token);
      lookUps.watch();
      return lookUps.shares.find(hash, async () => {
        const id = await redisCall(redis.get(`${prefix}:share:${hash}`));
        return id === null ? null : read(id);
      });
    },

    getShare: (shareId: string): Promise<Principal | null> =>
      lookUps.shares.find(shareId, () => read(shareId)),
  };
}

/** Returns null for an empty record. */
function principalOf(id: string, fields: Record<string, string>): Principal | null {
  const { job_id, project, description, created_at, expires_at: endsAt } = fields;
  if (!job_id || !project || description === undefined || !created_at) return null;
  const expiresAt = timeText(endsAt);
  const share: Share = { id, job_id, description, created_at, expires_at: expiresAt };
  const rights = { scopes: ['jobs:read' as const], requests_per_minute: null };
  return {
    id,
    name: description,
    project,
    ...rights,
    expires_at: expiresAt,
    api_key: null,
    share,
    user: null,
  };
}

function timeText(ms: unknown): string {
  return new Date(Number(ms)).toISOString();
}
