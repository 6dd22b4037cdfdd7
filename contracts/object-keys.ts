/** Key of a dataset's content, below the store's prefix. */
export function datasetKey(datasetId: string): string {
  return `datasets/${datasetId}/text`;
}

/** Key of a dataset's document, for restoring its record. */
export function datasetDocumentKey(datasetId: string): string {
  return `datasets/${datasetId}/dataset.json`;
}

/** Key of a model's folder, without a trailing slash. */
export function modelKey(modelId: string): string {
  return `models/${modelId}`;
}

/** Key of a model's document, for restoring its record. */
export function modelDocumentKey(modelId: string): string {
  return `${modelKey(modelId)}/MODEL.json`;
}

/** Key of a sweep's document, for restoring its record. */
export function sweepDocumentKey(sweepId: string): string {
  return `sweeps/${sweepId}/sweep.json`;
}

/** Key of the documents of a sweep's runs. */
export function sweepRunsKey(sweepId: string): string {
  return `sweeps/${sweepId}/runs.json`;
}

/** Key of the document with a project's limits, for restoring its record. */
export function quotaDocumentKey(project: string): string {
  return `projects/${project}/quota.json`;
}
