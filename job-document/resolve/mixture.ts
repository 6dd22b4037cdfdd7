import type { Dataset, FieldError, JobSpec } from '../../contracts/index.js';
import { fieldError } from '../common/field-error.js';
import { WEIGHT_SCALE } from '../mixture.js';
import { checkFormat } from './data.js';

type Mixture = NonNullable<JobSpec['data']['mixture']>;

const AT = '/data/mixture';

/** @param datasets those of the entries, as far as they could be looked up */
export function checkMixture(
  { mixture }: Pick<JobSpec['data'], 'mixture'>,
  datasets: readonly (Dataset | null)[],
): FieldError[] {
  if (mixture === undefined) return [];
  return [
    ...mixture.flatMap((entry, i) => checkFormat(`${AT}/${i}`, entry)),
    ...checkWeights(mixture),
    ...checkDatasets(mixture, datasets),
  ];
}

function checkWeights(mixture: Mixture): FieldError[] {
  const areWeighted = mixture.some(({ weight }) => weight !== undefined);
  return mixture.flatMap(({ weight }, i) => {
    const at = `${AT}/${i}/weight`;
    if (weight === undefined)
      return areWeighted
        ? [fieldError(at, 'missing_field', 'give each dataset of the mixture a weight, or none')]
        : [];
    const nearest = Math.max(1, Math.round(weight * WEIGHT_SCALE)) / WEIGHT_SCALE;
    if (nearest === weight) return [];
    const message = `a weight has at most three decimals (got ${weight})`;
    return [fieldError(at, 'out_of_range', message, String(nearest))];
  });
}

function checkDatasets(mixture: Mixture, datasets: readonly (Dataset | null)[]): FieldError[] {
  const names = mixture.map(({ dataset }, i) => dataset ?? datasets[i]?.id);
  const known = datasets.find((dataset) => dataset !== null);
  return names.flatMap((name, i) => {
    const at = `${AT}/${i}/dataset`;
    const first = names.indexOf(name);
    if (name !== undefined && first < i) {
      const message = `${name} is also at ${AT}/${first}; name it once, with the sum of both weights`;
      return [fieldError(at, 'mixture_dataset_twice', message)];
    }
    const dataset = datasets[i];
    if (!known || !dataset || dataset.format === known.format) return [];
    const message =
      `dataset ${dataset.id} has format=${dataset.format}, and dataset ${known.id} has format=${known.format}; ` +
      'mix datasets of one format, e.g. lines of texts with lines of chats (format=jsonl)';
    return [fieldError(at, 'mixture_formats_differ', message)];
  });
}
