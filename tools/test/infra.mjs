import { testBoot } from './infra/boot.mjs';
import { testImages } from './infra/images.mjs';
import { planExamples } from './infra/plans.mjs';
import { testProperties } from './infra/properties.mjs';
import { checkFormat, validateAll } from './infra/static-checks.mjs';
import { testStorage } from './infra/storage.mjs';
import { findTerraform, Workspace } from './infra/terraform.mjs';

/** Prints each result immediately and counts it. */
function reporter() {
  const totals = { passed: 0, failed: 0, skipped: 0 };
  return {
    totals,
    take({ name, problem, skipped }) {
      totals[skipped ? 'skipped' : problem === null ? 'passed' : 'failed'] += 1;
      console.log(
        skipped ? `  skipped ${name}: ${skipped}` : `  ${problem === null ? 'ok    ' : 'FAILED'} ${name}`,
      );
      if (problem !== null) console.log(problem);
    },
  };
}

async function runAll(workspace, take) {
  take(await checkFormat(workspace));
  await workspace.initRoot();
  const failed = (error) => take({ name: 'infra/terraform', problem: String(error.stack) });
  // Longest first: it waits for its server, the others for CPU time.
  const storage = testStorage(workspace).then(take, failed);
  const validations = validateAll(workspace).map((validation) => validation.then(take, failed));
  const properties = testProperties(workspace).then((results) => results.forEach(take), failed);
  const boot = testBoot(workspace).then(take, failed);
  const images = testImages(workspace).map((test) => test.then(take, failed));
  const plans = planExamples(workspace, Promise.all(validations)).map((plan) => plan.then(take, failed));
  await Promise.all([storage, ...validations, properties, boot, ...images, ...plans]);
}

/**
 * Tests infra/terraform: format, validity, the properties in its tests, plans of the examples with the real provider,
 * and the bucket on a real S3 server. Needs terraform and a local mirror with the AWS provider; downloads neither.
 * @returns {Promise<{passed: number, failed: number, skipped: number}>}
 */
export async function runInfraTests() {
  const found = await findTerraform();
  if (found.missing) {
    console.log(`  skipped infra/terraform: ${found.missing}`);
    return { passed: 0, failed: 0, skipped: 1 };
  }
  const { totals, take } = reporter();
  const workspace = new Workspace(found.mirror);
  try {
    await runAll(workspace, take);
  } catch (error) {
    take({ name: 'infra/terraform', problem: String(error.stack) });
  } finally {
    workspace.remove();
  }
  return totals;
}
