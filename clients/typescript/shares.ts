import type { NewShare, Share, ShareRequest } from '../../contracts/types.js';
import { bodyOf, consoleAddress, type Http } from './transport.js';

/** A share with the address that shows its job in a browser. */
export interface SharedAddress extends NewShare {
  url: string;
}

/** Shares of jobs: tokens that read one job until they expire. */
export class Shares {
  /** @param baseUrl URL of the API, which serves the console as well */
  constructor(
    private readonly http: Http,
    private readonly baseUrl: string,
  ) {}

  /** Creates a share. Only this answer contains its token, alone and in the fragment of the address. */
  async create(jobId: string, body: ShareRequest = {}): Promise<SharedAddress> {
    const params = { path: { job_id: jobId } };
    const share = await bodyOf(
      `share of ${jobId}`,
      this.http.POST('/v1/jobs/{job_id}/shares', { params, body }),
    );
    return { ...share, url: consoleAddress(this.baseUrl, ['shared', share.token]) };
  }

  /** Shares of a job that have not ended, newest first. */
  async list(jobId: string): Promise<Share[]> {
    const params = { path: { job_id: jobId } };
    return (await bodyOf(`shares of ${jobId}`, this.http.GET('/v1/jobs/{job_id}/shares', { params }))).data;
  }

  async revoke(jobId: string, shareId: string): Promise<void> {
    const params = { path: { job_id: jobId, share_id: shareId } };
    await bodyOf(`revoke ${shareId}`, this.http.DELETE('/v1/jobs/{job_id}/shares/{share_id}', { params }));
  }
}
