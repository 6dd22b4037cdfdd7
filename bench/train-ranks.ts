import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { MemoryPart, StepResult, TrainerConfig } from '../native/js/index.js';

/** One rank's measurements. */
export interface RankReport {
  kind: 'report';
  steps: StepResult[];
  /** Peak of the whole process, and resident set of Node.js with the addon before the trainer. */
  peak_rss_bytes: number;
  start_rss_bytes: number;
  /** Proportional set after the last step; its sum over ranks is the memory of all of them. */
  pss_bytes: number;
  /** Memory that the trainer reports as allocated. */
  memory: Record<MemoryPart, number>;
}

/** A rendezvous key sent to every rank. */
export interface Publication {
  kind: 'publish';
  key: string;
  value: Uint8Array;
}

function reportOf(
  child: ChildProcess,
  rank: number,
  relay: (publication: Publication) => void,
): Promise<RankReport> {
  return new Promise((resolve, reject) => {
    child.on('message', (message: RankReport | Publication) => {
      if (message.kind === 'report') resolve(message);
      else relay(message);
    });
    child.on('exit', (code, signal) =>
      reject(new Error(`rank ${rank} ended early (${signal ?? `exit code ${code}`})`)),
    );
  });
}

/** Trains with one process per configuration, relays their rendezvous and returns their reports in rank order. */
export async function runRanks(configs: TrainerConfig[]): Promise<RankReport[]> {
  const script = fileURLToPath(new URL('./train-rank.js', import.meta.url));
  const children = configs.map(() => fork(script, [], { serialization: 'advanced' }));
  const relay = (publication: Publication) => {
    for (const child of children) child.send(publication);
  };
  try {
    const reports = children.map((child, rank) => reportOf(child, rank, relay));
    children.forEach((child, rank) => {
      child.send({ kind: 'config', config: configs[rank] });
    });
    return await Promise.all(reports);
  } finally {
    for (const child of children) child.kill();
  }
}
