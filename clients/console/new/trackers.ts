/** Experiment trackers that a run can send its metrics to. */
import type { Integration } from '../../../contracts/types.js';

interface Field {
  name: string;
  label: string;
}

interface Tracker {
  label: string;
  /** Fields that name its server, of which a document has one. */
  targets: readonly Field[];
  fields: readonly (Field & { placeholder?: string })[];
}

/** Kinds that the contract knows, with their fields. */
export const TRACKERS: Readonly<Record<Integration['type'], Tracker>> = {
  mlflow: {
    label: 'MLflow',
    targets: [
      { name: 'server', label: 'Configured server' },
      { name: 'url', label: 'URL' },
    ],
    fields: [
      { name: 'experiment', label: 'Experiment' },
      { name: 'run_name', label: 'Run', placeholder: 'the name of the run' },
    ],
  },
  wandb: {
    label: 'Weights & Biases',
    targets: [{ name: 'server', label: 'Configured server' }],
    fields: [
      { name: 'project', label: 'Project' },
      { name: 'entity', label: 'Entity', placeholder: 'that of the key' },
      { name: 'run_name', label: 'Run', placeholder: 'the name of the run' },
    ],
  },
};

/** The most that the contract allows. */
export const MAX_INTEGRATIONS = 4;

export const trackerOf = (type: unknown): Tracker | undefined =>
  Object.entries(TRACKERS).find(([name]) => name === type)?.[1];

/** An integration of another kind keeps the fields that this kind has, too. */
export function withType(given: Readonly<Record<string, unknown>>, type: string): Record<string, unknown> {
  const tracker = trackerOf(type);
  const names = [...(tracker?.targets ?? []), ...(tracker?.fields ?? [])].map(({ name }) => name);
  return { type, ...Object.fromEntries(Object.entries(given).filter(([name]) => names.includes(name))) };
}
