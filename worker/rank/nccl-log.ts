import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Facts in NCCL's log about a connection of ranks. */
interface NcclFacts {
  /** `IB`, `Socket`, or the name of a plugin, such as `Libfabric`; `unknown` if its log does not say. */
  network: string;
  /** Provider of the plugin aws-ofi-nccl, such as `efa`; null for other networks. */
  provider: string | null;
  /** Only one rank of a world reports it; null for others. */
  version: string | null;
}

/**
 * The log of NCCL while ranks connect. It alone tells over which network NCCL sends: no function does in all versions.
 */
export class NcclLog {
  private constructor(private readonly dir: string) {}

  /**
   * Makes NCCL write its log to a private file. Must precede the first call of NCCL, which reads these variables once.
   * @returns null if the user has set NCCL_DEBUG: the log is where that says
   */
  static async begin(env: NodeJS.ProcessEnv = process.env): Promise<NcclLog | null> {
    if (env.NCCL_DEBUG) return null;
    try {
      const dir = await mkdtemp(join(tmpdir(), 'zf-nccl-'));
      Object.assign(env, {
        NCCL_DEBUG: 'INFO',
        NCCL_DEBUG_SUBSYS: 'INIT,NET',
        NCCL_DEBUG_FILE: join(dir, 'log'),
      });
      return new NcclLog(dir);
    } catch {
      return null;
    }
  }

  /** Reads and removes the file. A missing or strange one has no facts, and is no error. */
  async end(): Promise<NcclFacts> {
    const text = await readFile(join(this.dir, 'log'), 'utf8').catch(() => '');
    await rm(this.dir, { recursive: true, force: true }).catch(() => undefined);
    return ncclFacts(text);
  }
}

/** Finds the facts in NCCL's log. Its lines have been the same since 2.4, apart from capitals. */
export function ncclFacts(log: string): NcclFacts {
  const first = (pattern: RegExp) => pattern.exec(log)?.[1]?.trim() || null;
  return {
    network: first(/NCCL INFO Using network ([\w ./-]{1,64})$/m) ?? 'unknown',
    provider: first(/NET\/OFI Selected provider is ([\w;.-]{1,64})/i),
    version: first(/NCCL version ([\w.+-]{1,64})/),
  };
}

/** The facts as a line of the rank's log. */
export function ncclLine({ network, provider, version }: NcclFacts): string {
  const parts = [network, provider && `provider ${provider}`, version && `NCCL ${version}`];
  return `NCCL network: ${parts.filter(Boolean).join(', ')}`;
}
