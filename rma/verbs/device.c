//go:build cgo && verbs

#include "nic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// describe fills in what a way has of its device and port.
static void describe(nic_way *w, struct ibv_context *c, const struct ibv_device_attr *d, const struct ibv_port_attr *p, int port) {
	memset(w, 0, sizeof *w);
	strncpy(w->name, ibv_get_device_name(c->device), NIC_NAME - 1);
	w->port = (uint8_t)port;
	w->soft = d->vendor_id == 0xffffff; // RXE_VENDOR_ID
	w->mtu = (uint8_t)p->active_mtu;
	w->ethernet = p->link_layer == IBV_LINK_LAYER_ETHERNET;
	w->active = p->state == IBV_PORT_ACTIVE;
	w->lid = p->lid;
	w->atomics = d->atomic_cap;
	w->max_reads = d->max_qp_init_rd_atom;
	w->max_reads_in = d->max_qp_rd_atom;
	w->max_pairs = d->max_qp;
	w->max_regions = d->max_mr;
	w->max_region = d->max_mr_size;
	w->max_message = p->max_msg_sz;
}

// gids adds the ways of a port: one for each GID that is set.
static int gids(struct ibv_context *c, const nic_way *of, int length, nic_way *ways, int max) {
	static const uint8_t none[16];
	int n = 0;
	for (int i = 0; i < length && n < max; i++) {
		struct ibv_gid_entry e;
		if (ibv_query_gid_ex(c, of->port, (uint32_t)i, &e, 0) != 0) continue;
		// The first half of a GID that is not set is a subnet's prefix.
		if (memcmp(e.gid.raw + 8, none, 8) == 0) continue;
		ways[n] = *of;
		ways[n].gid_index = i;
		ways[n].roce2 = e.gid_type == IBV_GID_TYPE_ROCE_V2;
		memcpy(ways[n].gid, e.gid.raw, 16);
		n++;
	}
	return n;
}

static int ports(struct ibv_context *c, nic_way *ways, int max) {
	struct ibv_device_attr d;
	int n = 0;
	if (ibv_query_device(c, &d) != 0) return 0;
	for (int port = 1; port <= d.phys_port_cnt && n < max; port++) {
		struct ibv_port_attr p;
		nic_way of;
		if (ibv_query_port(c, (uint8_t)port, &p) != 0) continue;
		describe(&of, c, &d, &p, port);
		n += gids(c, &of, p.gid_tbl_len, ways + n, max - n);
	}
	return n;
}

int nic_ways(nic_way *ways, int max) {
	int n = 0, devices = 0;
	errno = 0;
	struct ibv_device **list = ibv_get_device_list(&devices);
	if (list == NULL) return errno ? -errno : -ENOSYS;
	for (int i = 0; i < devices; i++) {
		struct ibv_context *c = ibv_open_device(list[i]);
		if (c == NULL) continue;
		n += ports(c, ways + n, max - n);
		ibv_close_device(c);
	}
	ibv_free_device_list(list);
	return n;
}

int nic_open(const nic_way *way, nic_device **out) {
	int devices = 0, rc = ENODEV;
	struct ibv_device **list = ibv_get_device_list(&devices);
	if (list == NULL) return errno ? errno : ENOSYS;
	nic_device *d = calloc(1, sizeof *d);
	for (int i = 0; d != NULL && i < devices; i++)
		if (strcmp(ibv_get_device_name(list[i]), way->name) == 0) d->context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	if (d == NULL) return ENOMEM;
	d->way = *way;
	if (d->context != NULL && (d->pd = ibv_alloc_pd(d->context)) != NULL) {
		*out = d;
		return 0;
	}
	rc = errno ? errno : rc;
	nic_close(d);
	return rc;
}

void nic_close(nic_device *d) {
	if (d->pd != NULL) ibv_dealloc_pd(d->pd);
	if (d->context != NULL) ibv_close_device(d->context);
	free(d);
}

int nic_register(nic_device *d, void *memory, uint64_t bytes, int remote, struct ibv_mr **region) {
	int access = IBV_ACCESS_LOCAL_WRITE;
	if (remote) access |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	errno = 0;
	*region = ibv_reg_mr(d->pd, memory, bytes, access);
	return *region != NULL ? 0 : errno ? errno : ENOMEM;
}
