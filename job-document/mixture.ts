/** Datasets that a job trains on: a single one, or those of a mixture. */
import type { JobSpec, ResolvedJobSpec } from '../contracts/types.js';

type Data = ResolvedJobSpec['data'];
type GivenData = JobSpec['data'];

/** A dataset of a training. Without a weight its share is that of its samples. */
interface TrainingDataset {
  dataset: string;
  weight?: number;
}

/** The data section for one dataset. */
export type DataSection = Omit<Data, 'mixture'> & { dataset: string };

/** A weight has at most three decimals. */
export const WEIGHT_SCALE = 1000;

/**
 * Returns the datasets of the training, in the order of the document; none for a session. An object that was not copied
 * has no id yet.
 */
export function trainingDatasetsOf({ dataset, mixture }: Data): TrainingDataset[] {
  return mixture ?? (dataset === undefined ? [] : [{ dataset }]);
}

/** Returns the data section for each dataset of the training. */
export function trainingSectionsOf(data: Data): DataSection[] {
  const { mixture: _, ...shared } = data;
  return trainingDatasetsOf(data).map(({ dataset }) => ({ ...shared, dataset }));
}

/** Returns the JSON pointers of the fields that name the datasets of the training. */
export function trainingPointersOf({ mixture }: GivenData): string[] {
  return mixture?.map((_, i) => `/data/mixture/${i}/dataset`) ?? ['/data/dataset'];
}

/**
 * Returns the share of each dataset of the training, as integers relative to their sum.
 * @param samples number of samples of each dataset
 */
export function weightsOf(data: Data, samples: readonly number[]): number[] {
  return trainingDatasetsOf(data).map(({ weight }, i) =>
    weight === undefined ? (samples[i] as number) : Math.round(weight * WEIGHT_SCALE),
  );
}
