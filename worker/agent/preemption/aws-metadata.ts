import type { Logger } from '../../../platform/logging/logging.js';
import { waitOrAbort } from '../../../platform/process/retry.js';
import { InstanceMetadata } from './instance-metadata.js';
import type { PreemptionNotice, PreemptionSource } from './source.js';

interface AwsMetadataOptions {
  /** Base URL without a path. */
  url: string;
  /** Interval between requests; Amazon recommends 5 s. */
  poll_ms: number;
  log: Logger;
}

const SPOT = 'spot/instance-action';
const SCALING = 'autoscaling/target-lifecycle-state';

/**
 * Client of EC2's instance metadata service, version 2. It reports the interruption of a spot instance two minutes
 * before, and the scale-in of an autoscaling group.
 */
export class AwsMetadata implements PreemptionSource {
  private readonly metadata: InstanceMetadata;
  private isUnavailable = false;

  constructor(private readonly options: AwsMetadataOptions) {
    this.metadata = new InstanceMetadata(options.url);
  }

  async watch(signal: AbortSignal): Promise<PreemptionNotice | null> {
    while (!signal.aborted) {
      try {
        const notice = (await this.spotNotice()) ?? (await this.scalingNotice());
        if (notice) return notice;
        this.isUnavailable = false;
      } catch (error) {
        // Logged once per outage, because a machine without the service would fill its log.
        if (!this.isUnavailable)
          this.options.log.warn(
            { err: error },
            'preemption notices unavailable: the metadata service does not answer',
          );
        this.isUnavailable = true;
      }
      await waitOrAbort(this.options.poll_ms, signal);
    }
    return null;
  }

  /** Reads the spot notice: `{"action": "terminate", "time": "2026-11-21T23:30:00Z"}`, or 404 without one. */
  private async spotNotice(): Promise<PreemptionNotice | null> {
    const text = await this.metadata.read(SPOT);
    if (text === null) return null;
    const { action, time } = asObject(JSON.parse(text));
    const terminatesAt = typeof time === 'string' ? Date.parse(time) : Number.NaN;
    return {
      cause: `spot ${String(action)}`,
      terminates_at: Number.isNaN(terminatesAt) ? null : terminatesAt,
    };
  }

  /** Reads the target state of the autoscaling group; 404 outside of one. */
  private async scalingNotice(): Promise<PreemptionNotice | null> {
    const state = await this.metadata.read(SCALING);
    return state?.trim() === 'Terminated' ? { cause: 'autoscaling scale-in', terminates_at: null } : null;
  }
}

function asObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
