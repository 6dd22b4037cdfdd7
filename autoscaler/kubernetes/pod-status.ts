/** Pods as people see them: node, phase, and the cluster's reason. */
import type { PoolPod } from '../../contracts/index.js';
import type { Machine } from './pod.js';

/** Pods of a pool that are described. */
const MAX_PODS = 100;
/** The cluster keeps at most as much of a log. */
const MAX_LOG_CHARACTERS = 4_096;

/** Returns the pods that are described: those with a reason first, then those that do not run. */
export function podStatuses(machines: readonly Machine[]): PoolPod[] {
  const rank = ({ reason, phase }: PoolPod) => (reason !== null ? 0 : phase === 'running' ? 2 : 1);
  return machines
    .map(statusOf)
    .sort((a, b) => rank(a) - rank(b))
    .slice(0, MAX_PODS);
}

function statusOf(machine: Machine): PoolPod {
  const { name, type, phase, pod } = machine;
  const { reason, message } = reasonOf(machine);
  const log = pod.status.containerStatuses?.[0]?.state?.terminated?.message?.trim();
  return {
    name,
    type,
    node: pod.spec.nodeName ?? null,
    phase,
    reason: reason || null,
    message: message || null,
    log: log ? log.slice(-MAX_LOG_CHARACTERS) : null,
  };
}

/** Why a pod does not start, how it ended, or why it leaves. */
function reasonOf({ phase, pod: { status } }: Machine): { reason?: string; message?: string } {
  const { waiting, terminated } = status.containerStatuses?.[0]?.state ?? {};
  const condition = (type: string, value: string) =>
    status.conditions?.find((each) => each.type === type && each.status === value);
  if (phase === 'pending') return waiting ?? condition('PodScheduled', 'False') ?? {};
  if (phase === 'running') return {};
  const disruption = condition('DisruptionTarget', 'True');
  if (disruption) return disruption;
  if (phase !== 'ended' || !terminated) return status;
  const { reason = 'Terminated', exitCode } = terminated;
  return { reason, message: `exit code ${exitCode}` };
}
