import type { Share } from '../../contracts/index.js';

/** Begin of the token of a share. */
export const SHARE_TOKEN = 'zf_share_';

export interface ShareInput {
  job_id: string;
  description: string;
  life_ms: number;
}

/**
 * Shares: tokens that read one job until they expire. Only the SHA-256 of a token is stored, in Redis only. A share ends with its job; its
 * browser sessions end with it.
 */
export interface Shares {
  /** @throws `job_not_found`, `too_many_shares` */
  createShare(token: string, share: ShareInput): Promise<Share>;
  /** Returns the shares of a job that have not ended, newest first. */
  listShares(jobId: string): Promise<Share[]>;
  /** Ends a share with its sessions. Returns false when the job has no such share. */
  revokeShare(jobId: string, shareId: string): Promise<boolean>;
}
