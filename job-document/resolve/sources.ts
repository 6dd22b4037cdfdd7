import type { ResolvedJobSpec } from '../../contracts/index.js';
import type { DataSources } from './tokenizer.js';

/** URIs of the copies that a document names, by id. Content that is not copied yet has its URI as id. */
export function resolveSources({
  datasets,
  evaluation,
  source,
  tokenizer,
}: DataSources): Pick<ResolvedJobSpec, 'sources'> {
  const initial = source !== null && 'model' in source ? source.model : null;
  const copies = [initial, tokenizer, ...datasets, ...evaluation].flatMap((record): [string, string][] =>
    record?.source && record.source.uri !== record.id ? [[record.id, record.source.uri]] : [],
  );
  return copies.length === 0 ? {} : { sources: Object.fromEntries(copies) };
}
