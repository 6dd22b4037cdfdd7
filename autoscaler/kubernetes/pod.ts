/** Pods as the API server describes them: the fields that the autoscaler reads. */
import { Check, type Static, Type } from '../../platform/schema.js';
import { machineOf, type PodIdentity } from './names.js';
import { ANNOTATIONS } from './pod-manifest.js';

const text = Type.Optional(Type.String());
const Reason = { reason: text, message: text };
const State = Type.Optional(
  Type.Object({
    waiting: Type.Optional(Type.Object(Reason)),
    running: Type.Optional(Type.Object({ startedAt: text })),
    terminated: Type.Optional(
      Type.Object({ ...Reason, exitCode: Type.Integer(), startedAt: text, finishedAt: text }),
    ),
  }),
);

export const Pod = Type.Object({
  metadata: Type.Object({
    name: Type.String(),
    uid: Type.String(),
    resourceVersion: Type.String(),
    deletionTimestamp: text,
    annotations: Type.Optional(Type.Record(Type.String(), Type.String())),
  }),
  spec: Type.Object({ nodeName: text }),
  status: Type.Object({
    phase: text,
    ...Reason,
    conditions: Type.Optional(
      Type.Array(Type.Object({ type: Type.String(), status: Type.String(), ...Reason })),
    ),
    containerStatuses: Type.Optional(Type.Array(Type.Object({ state: State }))),
  }),
});

export type Pod = Static<typeof Pod>;
const pods = new Check(Pod);

export type Phase =
  /** Waits for a node, or its container for the image. */
  | 'pending'
  /** Its agent runs. */
  | 'running'
  /** It is being deleted. */
  | 'leaving'
  | 'ended';

/** Pod of the autoscaler: a machine, or a request for one. */
export interface Machine extends PodIdentity {
  name: string;
  uid: string;
  /** Id of the machine. */
  id: string;
  phase: Phase;
  /** Unix time in ms at which its agent started; null before. */
  started_at: number | null;
  pod: Pod;
}

/** Reads a pod; null if it is none of the autoscaler. Throws for one that is no pod. */
export function machineOfPod(value: unknown): Machine | null {
  if (!pods.fits(value))
    throw new Error(`the API server describes a pod that is none: ${pods.problems()[0]}`);
  const { name, uid, annotations = {} } = value.metadata;
  const { [ANNOTATIONS.pool]: pool, [ANNOTATIONS.type]: type, [ANNOTATIONS.number]: number } = annotations;
  if (pool === undefined || type === undefined || !/^\d{1,6}$/.test(number ?? '')) return null;
  const identity = { pool, type, number: Number(number) };
  return {
    ...identity,
    name,
    uid,
    id: machineOf(name, uid),
    phase: phaseOf(value),
    started_at: startOf(value),
    pod: value,
  };
}

function phaseOf({ metadata, status }: Pod): Phase {
  if (status.phase === 'Succeeded' || status.phase === 'Failed') return 'ended';
  if (metadata.deletionTimestamp !== undefined) return 'leaving';
  return status.phase === 'Running' ? 'running' : 'pending';
}

function startOf({ status }: Pod): number | null {
  const { running, terminated } = status.containerStatuses?.[0]?.state ?? {};
  const time = running?.startedAt ?? terminated?.startedAt;
  return time ? Date.parse(time) : null;
}
