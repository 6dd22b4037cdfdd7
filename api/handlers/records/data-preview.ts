import type { DataPreview } from '../../../contracts/index.js';
import { specLookups } from '../../jobs/changes/create-job.js';
import { invalidDocument, tryResolve } from '../../jobs/check-spec.js';
import { previewOf } from '../../jobs/preview.js';
import type { OperationHandler } from '../types.js';

export const previewData: OperationHandler<'previewData'> = async (request): Promise<DataPreview> => {
  const { spec: document, texts: numTexts = 5 } = request.body;
  // Objects in buckets are not read; what else the document refers to must exist.
  const { object: _, ...find } = specLookups(request);
  const { spec, errors } = await tryResolve(document, [], find);
  if (spec === null)
    throw invalidDocument(errors.map((error) => ({ ...error, pointer: `/spec${error.pointer}` })));
  return previewOf(request, spec, numTexts);
};
