import type { OperationId } from '../../contracts/index.js';
import * as apiKeys from './access/api-keys.js';
import { listAuditLog } from './access/audit-log.js';
import * as hubToken from './access/hub-token.js';
import * as projects from './access/projects.js';
import * as sessions from './access/sessions.js';
import * as shares from './access/shares.js';
import { getSignInMethods } from './access/sign-in-methods.js';
import { getUsage } from './access/usage.js';
import * as users from './access/users.js';
import * as calls from './calls/calls.js';
import * as pools from './fleet/pools.js';
import * as service from './fleet/service.js';
import * as webhooks from './fleet/webhooks.js';
import * as graders from './graders/graders.js';
import * as control from './jobs/control.js';
import { estimateMemory } from './jobs/estimate.js';
import * as history from './jobs/history.js';
import * as changes from './jobs/job-changes.js';
import * as jobs from './jobs/jobs.js';
import * as stream from './jobs/stream.js';
import { previewData } from './records/data-preview.js';
import * as datasets from './records/datasets.js';
import * as models from './records/models.js';
import * as uploads from './records/uploads.js';
import * as checkpoints from './results/checkpoints.js';
import * as downloads from './results/downloads.js';
import * as exports from './results/exports.js';
import { sampleCheckpoint, sampleModel } from './results/samples.js';
import * as tensors from './results/tensors.js';
import * as sweeps from './sweeps/sweeps.js';
import type { OperationHandler } from './types.js';

/** One handler per operation of the contract; a test compares the two sets. */
export const handlers: { readonly [Id in OperationId]: OperationHandler<Id> } = {
  createJob: jobs.createJob,
  listJobs: jobs.listJobs,
  getJob: jobs.getJob,
  getJobDocument: jobs.getJobDocument,
  updateJob: changes.updateJob,
  deleteJob: changes.deleteJob,
  listJobAttempts: changes.listJobAttempts,
  estimateMemory,
  previewData,
  runGrader: graders.runGrader,
  validateGrader: graders.validateGrader,

  cancelJob: control.cancelJob,
  pauseJob: control.pauseJob,
  resumeJob: control.resumeJob,
  resizeJob: control.resizeJob,
  retryJob: control.retryJob,

  putCall: calls.putCall,
  getCall: calls.getCall,
  getCallResult: calls.getCallResult,
  getRollout: calls.getRollout,
  listCalls: calls.listCalls,

  listJobEvents: history.listJobEvents,
  listJobMetrics: history.listJobMetrics,
  listJobLogs: history.listJobLogs,
  listCheckpoints: history.listCheckpoints,
  listJobCheckpoints: history.listJobCheckpoints,
  streamJob: stream.streamJob,

  checkpointJob: checkpoints.checkpointJob,
  forkJob: checkpoints.forkJob,
  getCheckpoint: checkpoints.getCheckpoint,
  updateCheckpoint: checkpoints.updateCheckpoint,
  deleteCheckpoint: checkpoints.deleteCheckpoint,
  verifyCheckpoint: checkpoints.verifyCheckpoint,
  sampleCheckpoint,
  sampleModel,
  exportCheckpoint: exports.exportCheckpoint,
  listCheckpointExports: exports.listCheckpointExports,
  listCheckpointTensors: tensors.listCheckpointTensors,
  getCheckpointTensor: tensors.getCheckpointTensor,
  putCheckpointTensor: tensors.putCheckpointTensor,
  getTensorEdit: tensors.getTensorEdit,
  createDownloadUrls: downloads.createDownloadUrls,
  getCheckpointArchive: downloads.getCheckpointArchive,
  getCheckpointFile: downloads.getCheckpointFile,

  createDataset: datasets.createDataset,
  listDatasets: datasets.listDatasets,
  getDataset: datasets.getDataset,
  getDatasetContent: datasets.getDatasetContent,
  updateDataset: datasets.updateDataset,
  deleteDataset: datasets.deleteDataset,

  createUpload: uploads.createUpload,
  getUpload: uploads.getUpload,
  createUploadUrls: uploads.createUploadUrls,
  putUploadPart: uploads.putUploadPart,
  completeUpload: uploads.completeUpload,
  deleteUpload: uploads.deleteUpload,

  createModel: models.createModel,
  listModels: models.listModels,
  getModel: models.getModel,
  updateModel: models.updateModel,
  deleteModel: models.deleteModel,

  createApiKey: apiKeys.createApiKey,
  listApiKeys: apiKeys.listApiKeys,
  getApiKey: apiKeys.getApiKey,
  updateApiKey: apiKeys.updateApiKey,
  revokeApiKey: apiKeys.revokeApiKey,
  rotateApiKey: apiKeys.rotateApiKey,

  createSignInCode: sessions.createSignInCode,
  createSession: sessions.createSession,
  endSession: sessions.endSession,
  endSessions: sessions.endSessions,
  listUsers: users.listUsers,
  endSessionsOf: users.endSessionsOf,
  getSignInMethods,

  createShare: shares.createShare,
  listShares: shares.listShares,
  revokeShare: shares.revokeShare,

  listAuditLog,

  listProjects: projects.listProjects,
  getProject: projects.getProject,
  putProject: projects.putProject,
  getHubToken: hubToken.getHubToken,
  putHubToken: hubToken.putHubToken,
  deleteHubToken: hubToken.deleteHubToken,
  getUsage,
  getMe: projects.getMe,

  getMetrics: pools.getMetrics,
  listPools: pools.listPools,
  listWorkers: pools.listWorkers,

  createSweep: sweeps.createSweep,
  listSweeps: sweeps.listSweeps,
  getSweep: sweeps.getSweep,
  deleteSweep: sweeps.deleteSweep,
  cancelSweep: sweeps.cancelSweep,
  pauseSweep: sweeps.pauseSweep,
  resumeSweep: sweeps.resumeSweep,

  createWebhook: webhooks.createWebhook,
  listWebhooks: webhooks.listWebhooks,
  getWebhook: webhooks.getWebhook,
  updateWebhook: webhooks.updateWebhook,
  deleteWebhook: webhooks.deleteWebhook,
  rotateWebhookSecret: webhooks.rotateWebhookSecret,
  listWebhookDeliveries: webhooks.listWebhookDeliveries,
  redeliverWebhook: webhooks.redeliverWebhook,
  pingWebhook: webhooks.pingWebhook,

  getHealth: service.getHealth,
  getReadiness: service.getReadiness,
  getOpenapi: service.getOpenapi,
};
