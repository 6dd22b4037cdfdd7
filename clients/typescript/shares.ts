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
  async create(job_id: string, body: ShareRequest = {}): Promise<SharedAddress> {
    const params = { path: { job_id } };
    const share = await bodyOf(
      `share of ${job_id}`,
      this.http.POST('/v1/jobs/{job_id}/shares', { params, body }),
    );
    return { ...share, url: consoleAddress(this.baseUrl, ['shared', share.token]) };
  }

  /** Shares of a job that have not ended, newest first. */
  async list(job_id: string): Promise<Share[]> {
    const params = { path: { job_id } };
    return (await bodyOf(`shares of ${job_id}`, this.http.GET('/v1/jobs/{job_id}/shares', { params }))).data;
  }

  async revoke(job_id: string, share_id: string): Promise<void> {
    const params = { path: { job_id, share_id } };
    await bodyOf(`revoke ${share_id}`, this.http.DELETE('/v1/jobs/{job_id}/shares/{share_id}', { params }));
  }
}
