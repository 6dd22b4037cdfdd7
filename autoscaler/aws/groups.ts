import {
  type AutoScalingClient,
  type AutoScalingGroup,
  CompleteLifecycleActionCommand,
  DescribeLifecycleHooksCommand,
  DescribeScalingActivitiesCommand,
  type LifecycleHook,
  paginateDescribeAutoScalingGroups,
  RecordLifecycleActionHeartbeatCommand,
  type Activity as ScalingActivity,
  SetDesiredCapacityCommand,
  TerminateInstanceInAutoScalingGroupCommand,
} from '@aws-sdk/client-auto-scaling';
import type { Activity } from './launch-problems.js';

/** Lifecycle states of instances that are leaving their group, or are not part of it. */
const LEAVING = /^(Terminating|Detaching|EnteringStandby|Standby|Quarantined)/;
const ABSENT = /^(Terminated|Detached|Warmed)/;
/** State of an instance whose lifecycle hooks are not completed. */
const WAITING = 'Terminating:Wait';

interface GroupInstance {
  id: string;
  terminating: boolean;
  /** True while lifecycle hooks hold the instance. */
  waiting: boolean;
}

/** Lifecycle hook for terminating instances. */
export interface TerminationHook {
  name: string;
  /** Time that the hook holds an instance, restarted by each heartbeat. */
  timeout_ms: number;
}

export interface Group {
  name: string;
  desired: number;
  min: number;
  max: number;
  instances: GroupInstance[];
}

/** Calls of EC2 Auto Scaling as plain data. Errors are the SDK's, which retries throttled calls by itself. */
export class Groups {
  constructor(private readonly client: AutoScalingClient) {}

  /** Describes the groups of `names` that exist. */
  async describe(names: readonly string[]): Promise<Group[]> {
    const groups: Group[] = [];
    const pages = paginateDescribeAutoScalingGroups(
      { client: this.client },
      { AutoScalingGroupNames: [...names] },
    );
    for await (const { AutoScalingGroups = [] } of pages) groups.push(...AutoScalingGroups.map(groupOf));
    return groups;
  }

  /** Returns the latest activities of a group, newest first. */
  async activities(name: string): Promise<Activity[]> {
    const input = { AutoScalingGroupName: name, MaxRecords: ACTIVITIES };
    const { Activities = [] } = await this.client.send(new DescribeScalingActivitiesCommand(input));
    return Activities.map(activityOf);
  }

  async setDesired(name: string, desired: number): Promise<void> {
    const input = { AutoScalingGroupName: name, DesiredCapacity: desired, HonorCooldown: false };
    await this.client.send(new SetDesiredCapacityCommand(input));
  }

  /** Terminates an instance, even if it is protected from scale-in. Does nothing if the instance is gone. */
  async terminate(instance: string): Promise<void> {
    const input = { InstanceId: instance, ShouldDecrementDesiredCapacity: true };
    await this.client.send(new TerminateInstanceInAutoScalingGroupCommand(input)).catch(unlessGone);
  }

  /** Returns the hooks that hold terminating instances. */
  async terminationHooks(name: string): Promise<TerminationHook[]> {
    const { LifecycleHooks = [] } = await this.client.send(
      new DescribeLifecycleHooksCommand({ AutoScalingGroupName: name }),
    );
    return LifecycleHooks.filter(
      ({ LifecycleTransition }) => LifecycleTransition === 'autoscaling:EC2_INSTANCE_TERMINATING',
    ).map(hookOf);
  }

  /** Restarts the timeout of a hook. Does nothing if the instance does not wait. */
  async heartbeat(name: string, hook: string, instance: string): Promise<void> {
    const input = { AutoScalingGroupName: name, LifecycleHookName: hook, InstanceId: instance };
    await this.client.send(new RecordLifecycleActionHeartbeatCommand(input)).catch(unlessGone);
  }

  /** Lets the instance terminate. Does nothing if the instance does not wait. */
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

/** A group that launches several instances at once has an activity for each. */
const ACTIVITIES = 20;

function activityOf({ StatusCode, StartTime, Description, StatusMessage, Cause }: ScalingActivity): Activity {
  return {
    status: StatusCode ?? '',
    started_at: StartTime?.getTime() ?? 0,
    description: Description ?? '',
    message: StatusMessage ?? Cause ?? '',
  };
}

/** Default of AWS for hooks without a timeout. */
const DEFAULT_TIMEOUT_SECONDS = 3600;

function hookOf({
  LifecycleHookName,
  HeartbeatTimeout = DEFAULT_TIMEOUT_SECONDS,
}: LifecycleHook): TerminationHook {
  return { name: LifecycleHookName ?? '', timeout_ms: HeartbeatTimeout * 1000 };
}

/** AWS has no error code for this case. */
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
      ABSENT.test(state) ? [] : { id, terminating: LEAVING.test(state), waiting: state === WAITING },
    ),
  };
}
