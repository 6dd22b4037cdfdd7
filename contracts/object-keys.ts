/** Where the text of a dataset lies in the object store, below the store's own prefix. */
export function datasetKey(datasetId: string): string {
  return `datasets/${datasetId}/text`;
}

/** Where the record of a dataset lies beside its text, for the day on which Redis is empty. */
export function datasetDocumentKey(datasetId: string): string {
  return `datasets/${datasetId}/dataset.json`;
}

/** Where the files of a model lie, without a slash at its end. */
export function modelKey(modelId: string): string {
  return `models/${modelId}`;
}

/** Where the record of a model lies among its files. */
export function modelDocumentKey(modelId: string): string {
  return `${modelKey(modelId)}/MODEL.json`;
}

/** Where the limits of a project are kept beside its record, for the day on which Redis is empty. */
export function quotaDocumentKey(project: string): string {
  return `projects/${project}/quota.json`;
}
