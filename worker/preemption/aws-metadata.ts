import type { Logger } from '../../platform/logging.js';
import { waitOrAbort } from '../retry.js';
import type { PreemptionNotice, PreemptionSource } from './source.js';

export interface AwsMetadataOptions {
  /** Without a path. */
  url: string;
  /** Between two looks; Amazon recommends 5 s. */
  poll_ms: number;
  log: Logger;
}

const TOKEN_PATH = '/latest/api/token';
const SPOT_PATH = '/latest/meta-data/spot/instance-action';
const SCALING_PATH = '/latest/meta-data/autoscaling/target-lifecycle-state';
const TOKEN_TTL_SECONDS = 21_600;
const REQUEST_TIMEOUT_MS = 2_000;

/**
 * EC2's instance metadata service, version 2: tells of the interruption of a spot instance two minutes before, and of an
 * autoscaling group that wants the instance to end. Each look needs a token, which is asked for anew when it is refused.
 */
export class AwsMetadata implements PreemptionSource {
  private token: string | null = null;
  private silent = false;

  constructor(private readonly options: AwsMetadataOptions) {}

  async watch(signal: AbortSignal): Promise<PreemptionNotice | null> {
    while (!signal.aborted) {
      try {
        const notice = (await this.spotNotice()) ?? (await this.scalingNotice());
        if (notice) return notice;
        this.silent = false;
      } catch (error) {
        // Once for each outage: a machine without the service would fill its log.
        if (!this.silent)
          this.options.log.warn({ err: error }, 'no word of preemptions from the metadata service');
        this.silent = true;
      }
      await waitOrAbort(this.options.poll_ms, signal);
    }
    return null;
  }

  /** `{"action": "terminate", "time": "2026-11-21T23:30:00Z"}`, and 404 as long as there is none. */
  private async spotNotice(): Promise<PreemptionNotice | null> {
    const text = await this.read(SPOT_PATH);
    if (text === null) return null;
    const { action, time } = asObject(JSON.parse(text));
    const leaves_at = typeof time === 'string' ? Date.parse(time) : Number.NaN;
    return { cause: `spot ${String(action)}`, leaves_at: Number.isNaN(leaves_at) ? null : leaves_at };
  }

  /** The state that the group wants; 404 outside of one. */
  private async scalingNotice(): Promise<PreemptionNotice | null> {
    const state = await this.read(SCALING_PATH);
    return state?.trim() === 'Terminated' ? { cause: 'autoscaling scale-in', leaves_at: null } : null;
  }

  /** Null for 404. */
  private async read(path: string): Promise<string | null> {
    let reply = await this.get(path);
    if (reply.status === 401) {
      this.token = null;
      reply = await this.get(path);
    }
    if (reply.status === 404) return null;
    if (!reply.ok) throw new Error(`${path} answered ${reply.status}`);
    return reply.text();
  }

  private async get(path: string): Promise<Response> {
    this.token ??= await this.newToken();
    return this.request(path, 'GET', { 'X-aws-ec2-metadata-token': this.token });
  }

  private async newToken(): Promise<string> {
    const reply = await this.request(TOKEN_PATH, 'PUT', {
      'X-aws-ec2-metadata-token-ttl-seconds': String(TOKEN_TTL_SECONDS),
    });
    if (!reply.ok) throw new Error(`${TOKEN_PATH} answered ${reply.status}`);
    return reply.text();
  }

  private request(path: string, method: string, headers: Record<string, string>): Promise<Response> {
    const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
    return fetch(new URL(path, this.options.url), { method, headers, signal, redirect: 'error' });
  }
}

function asObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
