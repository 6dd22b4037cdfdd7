import {
  type AutoScalingClient,
  type AutoScalingGroup,
  CompleteLifecycleActionCommand,
  DescribeLifecycleHooksCommand,
  type LifecycleHook,
  paginateDescribeAutoScalingGroups,
  RecordLifecycleActionHeartbeatCommand,
  SetDesiredCapacityCommand,
  TerminateInstanceInAutoScalingGroupCommand,
} from '@aws-sdk/client-auto-scaling';

/** Amazon's words for an instance that is on its way out, or is not there yet to be counted. */
const LEAVING = /^(Terminating|Detaching|EnteringStandby|Standby|Quarantined)/;
const ABSENT = /^(Terminated|Detached|Warmed)/;
/** The group waits for its hooks to be completed. */
const WAITS = 'Terminating:Wait';

export interface GroupInstance {
  id: string;
  leaving: boolean;
  /** It is held by lifecycle hooks until somebody completes them. */
  waits: boolean;
}

/** It holds instances that are to be terminated. */
export interface TerminationHook {
  name: string;
  /** For so long, and for as long again after each heartbeat. */
  timeout_ms: number;
}

export interface Group {
  name: string;
  desired: number;
  min: number;
  max: number;
  instances: GroupInstance[];
}

/** The calls of EC2 Auto Scaling, as plain data. Errors are the SDK's; it repeats calls that were throttled by itself. */
export class Groups {
  constructor(private readonly client: AutoScalingClient) {}

  /** Those of `names` that there are. */
  async describe(names: readonly string[]): Promise<Group[]> {
    const groups: Group[] = [];
    const pages = paginateDescribeAutoScalingGroups(
      { client: this.client },
      { AutoScalingGroupNames: [...names] },
    );
    for await (const { AutoScalingGroups = [] } of pages) groups.push(...AutoScalingGroups.map(groupOf));
    return groups;
  }

  async setDesired(name: string, desired: number): Promise<void> {
    const input = { AutoScalingGroupName: name, DesiredCapacity: desired, HonorCooldown: false };
    await this.client.send(new SetDesiredCapacityCommand(input));
  }

  /** Also of an instance that is protected from scale-in. Nothing happens to one that is gone. */
  async terminate(instance: string): Promise<void> {
    const input = { InstanceId: instance, ShouldDecrementDesiredCapacity: true };
    await this.client.send(new TerminateInstanceInAutoScalingGroupCommand(input)).catch(unlessGone);
  }

  /** The hooks that hold an instance that is to be terminated. */
  async terminationHooks(name: string): Promise<TerminationHook[]> {
    const { LifecycleHooks = [] } = await this.client.send(
      new DescribeLifecycleHooksCommand({ AutoScalingGroupName: name }),
    );
    return LifecycleHooks.filter(
      ({ LifecycleTransition }) => LifecycleTransition === 'autoscaling:EC2_INSTANCE_TERMINATING',
    ).map(hookOf);
  }

  /** The instance may wait for as long again from now on. Nothing happens to one that does not wait. */
  async heartbeat(name: string, hook: string, instance: string): Promise<void> {
    const input = { AutoScalingGroupName: name, LifecycleHookName: hook, InstanceId: instance };
    await this.client.send(new RecordLifecycleActionHeartbeatCommand(input)).catch(unlessGone);
  }

  /** The instance need not wait any longer. Nothing happens to one that does not. */
  async completeHook(name: string, hook: string, instance: string): Promise<void> {
    const input = {
      AutoScalingGroupName: name,
      LifecycleHookName: hook,
      InstanceId: instance,
      LifecycleActionResult: 'CONTINUE',
    };
    await this.client.send(new CompleteLifecycleActionCommand(input)).catch(unlessGone);
  }
}

/** What Amazon takes where a hook does not say. */
const DEFAULT_TIMEOUT_SECONDS = 3600;

function hookOf({
  LifecycleHookName,
  HeartbeatTimeout = DEFAULT_TIMEOUT_SECONDS,
}: LifecycleHook): TerminationHook {
  return { name: LifecycleHookName ?? '', timeout_ms: HeartbeatTimeout * 1000 };
}

/** Amazon has no code for it. */
function unlessGone(error: unknown): void {
  const { name, message } = error as Error;
  const gone = /not found|no managed instance|no active lifecycle action/i.test(message);
  if (name !== 'ValidationError' || !gone) throw error;
}

function groupOf({
  AutoScalingGroupName,
  DesiredCapacity,
  MinSize,
  MaxSize,
  Instances = [],
}: AutoScalingGroup): Group {
  return {
    name: AutoScalingGroupName ?? '',
    desired: DesiredCapacity ?? 0,
    min: MinSize ?? 0,
    max: MaxSize ?? 0,
    instances: Instances.flatMap(({ InstanceId: id = '', LifecycleState: state = '' }) =>
      ABSENT.test(state) ? [] : { id, leaving: LEAVING.test(state), waits: state === WAITS },
    ),
  };
}
