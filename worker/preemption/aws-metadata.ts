import type { Logger } from '../../platform/logging/logging.js';
import { waitOrAbort } from '../../platform/process/retry.js';
import { InstanceMetadata } from './instance-metadata.js';
import type { PreemptionNotice, PreemptionSource } from './source.js';

export interface AwsMetadataOptions {
  /** Without a path. */
  url: string;
  /** Between two looks; Amazon recommends 5 s. */
  poll_ms: number;
  log: Logger;
}

const SPOT = 'spot/instance-action';
const SCALING = 'autoscaling/target-lifecycle-state';

/**
 * EC2's instance metadata service, version 2: tells of the interruption of a spot instance two minutes before, and of an
 * autoscaling group that wants the instance to end.
 */
export class AwsMetadata implements PreemptionSource {
  private readonly metadata: InstanceMetadata;
  private silent = false;

  constructor(private readonly options: AwsMetadataOptions) {
    this.metadata = new InstanceMetadata(options.url);
  }

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
    const text = await this.metadata.read(SPOT);
    if (text === null) return null;
    const { action, time } = asObject(JSON.parse(text));
    const leaves_at = typeof time === 'string' ? Date.parse(time) : Number.NaN;
    return { cause: `spot ${String(action)}`, leaves_at: Number.isNaN(leaves_at) ? null : leaves_at };
  }

  /** The state that the group wants; 404 outside of one. */
  private async scalingNotice(): Promise<PreemptionNotice | null> {
    const state = await this.metadata.read(SCALING);
    return state?.trim() === 'Terminated' ? { cause: 'autoscaling scale-in', leaves_at: null } : null;
  }
}

function asObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
